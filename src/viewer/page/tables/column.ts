/** A column of a table: what it shows, sorts by, and exports. */
import type { ReactNode } from 'react';
import type { FieldValue } from '../../documents/filter.ts';

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  /** What is sorted, filtered and exported. */
  readonly value: (row: Row) => FieldValue;
  readonly cell?: (row: Row) => ReactNode;
  readonly width: number;
  readonly numeric?: boolean;
  /** Explains the column on hover and to screen readers. */
  readonly title?: string;
  readonly hidden?: boolean;
}
