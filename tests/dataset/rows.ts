// Rows that tests of the dataset folder share.
import type { Instance } from '../../src/dataset/instance.ts';
import { normaliseRow } from '../support/suites.ts';

export const rawRow = (id: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  instance_id: id,
  repo: 'acme/widgets',
  base_commit: '0123456789abcdef0123456789abcdef01234567',
  problem_statement: `Widget ${id} is broken`,
  patch: '',
  test_patch: '',
  FAIL_TO_PASS: '["test_a"]',
  PASS_TO_PASS: '[]',
  ...more,
});

export function instanceOf(id: string, more: Record<string, unknown> = {}): Instance {
  const row = normaliseRow(rawRow(id, more));
  if (!row.ok) throw new Error(row.messages.join('; '));
  return row.instance;
}
