/** Readers for values of a provider's JSON, which may be anything. */

import type { ZodError } from 'zod';
import { isRecord } from '../../base/isRecord.ts';

export const asObject = (value: unknown): Record<string, unknown> | null => (isRecord(value) ? value : null);
export const asText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** The first thing that zod found, as `path: message`. */
export const firstIssue = (error: ZodError): string => {
  const issue = error.issues[0];
  return issue ? `${issue.path.join('.') || 'body'}: ${issue.message}` : 'unknown form';
};
