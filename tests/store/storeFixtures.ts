// A database with one run, made through the store's own functions.

import { createHash } from 'node:crypto';
import type { ExitReason } from '../../src/outcome.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { insertRun, type RunRow } from '../../src/store/records/runs.ts';
import type { AttemptEnd } from '../../src/store/records/trials.ts';

export function freshStore(path = ':memory:'): Store {
  return openStore(path);
}

export function planted(
  store: Store,
  options: { name?: string; ids?: readonly string[]; epochs?: number } = {},
): RunRow {
  return insertRun(store, {
    run: {
      name: options.name ?? 'r1',
      created_at: '2026-01-01T00:00:00.000Z',
      config: JSON.stringify({ run: { epochs: options.epochs ?? 1 } }),
      config_hash: 'c',
      manifest: '{}',
      dataset_source: 'd.jsonl',
      dataset_revision: null,
      dataset_hash: 'h',
      budget_nano: null,
      emit_empty: 0,
      imported: 0,
    },
    arms: [{ name: 'default', model: 'm', config: '{}' }],
    instances: (options.ids ?? ['a__a-1', 'a__a-2']).map((id) => ({
      instance_id: id,
      repo: 'a/a',
      difficulty: '',
      image: 'i',
      row_hash: id,
      row: '{}',
      weight: 1,
    })),
    epochs: options.epochs ?? 1,
  });
}

export const ending = (reason: ExitReason, more: Partial<AttemptEnd> = {}): AttemptEnd => ({
  ended_at: '2026-01-01T00:01:00.000Z',
  exit_reason: reason,
  exit_detail: null,
  exit_status: null,
  error_message: null,
  error_evidence: null,
  submission: null,
  captured_patch: null,
  patch_source: 'none',
  patch_state: 'empty',
  model_patch: '',
  patch_sha256: createHash('sha256').digest('hex'),
  steps: 1,
  oom_kills: 0,
  elapsed_ms: 1,
  working_ms: 1,
  suspicion: '[]',
  notes: '[]',
  ...more,
});
