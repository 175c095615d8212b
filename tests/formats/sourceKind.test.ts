// What a path is, told from names and beginnings: every kind, and things that only look like one.
import { expect, test } from 'vitest';
import { type SourceKind, sourceKind } from '../../src/formats/sourceKind.ts';

const file = (name: string, head: string) => sourceKind({ name, files: null, head: () => head });
const folder = (files: Readonly<Record<string, string>>) =>
  sourceKind({ name: 'f', files: Object.keys(files), head: (path) => files[path] ?? '' });

test.each<[SourceKind | null, string, string]>([
  ['inspect_log', 'a.eval', 'PK'],
  ['inspect_log', 'a.json', '{\n  "version": 2,\n "eval": {"task": "t", "model": "m"'],
  ['predictions', 'a.jsonl', ''],
  ['predictions', 'preds.json', '{"a__a-1": {"model_name_or_path": "m", "model_patch": ""}}'],
  ['atif', 'x.json', '{"schema_version": "ATIF-v1.8", "steps": []'],
  ['run_report', 'm.r.json', '{"total_instances": 3, "submitted_ids": ['],
  ['leaderboard_results', 'results.json', '{"no_generation": [], "resolved" : ["a__a-1"]}'],
  ['instance_report', 'report.json', '{"a__a-1": {"resolved": true}}'],
  ['verdict_map', 'eval_results.json', '{"a__a-1": true, "a__a-2": false}'],
  [null, 'other.json', '{"a__a-1": 3}'],
  [null, 'text', 'resolved: yes'],
  [null, 'empty', ''],
])('a file: %s (%s)', (kind, name, head) => {
  expect(file(name, head)).toBe(kind);
});

test.each<[SourceKind | null, Readonly<Record<string, string>>]>([
  ['results_root', { 'swebatch.db': '', 'r/trajectories/a/a.traj.json': '' }],
  ['harbor_job', { 'result.json': '{"n_total_trials": 3}', 't/result.json': '{}' }],
  ['inspect_logs', { 'a.eval': '' }],
  ['inspect_logs', { '2026-01-01T00-00-00_t_x.json': '{"eval": {"task": "t", "model": "m"' }],
  [
    'leaderboard',
    { 'all_preds.jsonl': '', 'results/results.json': '{"resolved": []}', 'trajs/a.traj.json': '' },
  ],
  ['mini_swe_agent', { 'preds.json': '{}', 'a/a.traj.json': '' }],
  ['predictions', { 'preds.json': '{}' }],
  ['graded_predictions', { 'predictions.jsonl': '', 'a__a-1/report.json': '' }],
  ['atif', { 'trajectories/a/a.atif.json': '' }],
  ['instance_reports', { 'run_evaluation/r/m/a__a-1/report.json': '' }],
  ['run_report', { 'm.r.json': '{"resolved_ids": []', 'other.json': '{}' }],
  [null, { 'result.json': '{"ok": true}', 'a/b.txt': '' }],
  [null, { '2026-01-01T00-00-00.json': '{"a": 1}' }],
  [null, {}],
])('a folder: %s', (kind, files) => {
  expect(folder(files)).toBe(kind);
});
