// What a path is, told from names and beginnings: every kind, and things that only look like one.
import { expect, test } from 'vitest';
import { allFormats, recognised } from '../../src/formats/formats.ts';

const formats = await allFormats();

const file = (name: string, head: string) =>
  recognised({ name, files: null, head: () => head }, formats)?.words ?? null;
const folder = (files: Readonly<Record<string, string>>) =>
  recognised({ name: 'f', files: Object.keys(files), head: (path) => files[path] ?? '' }, formats)?.words ??
  null;

test.each<[string | null, string, string]>([
  ['a log of Inspect', 'a.eval', 'PK'],
  ['a trajectory of SWE-agent', 'a__a-1.traj', '{"environment": "swe_main", "trajectory": ['],
  [
    "OpenHands' output.jsonl",
    'output.jsonl',
    '{"instance_id": "a__a-1", "test_result": {"git_patch": ""}, "history": []',
  ],
  ["OpenHands' output.jsonl", 'old.jsonl', '{"instance_id": "a__a-1", "instruction": "", "git_patch": "'],
  [
    'results of Terminal-Bench 1',
    'results.json',
    '{"id": "x", "results": [{"trial_name": "a.1-of-1", "task_id": "a"',
  ],
  ['a log of Inspect', 'a.json', '{\n  "version": 2,\n "eval": {"task": "t", "model": "m"'],
  ['predictions', 'a.jsonl', ''],
  ['predictions', 'preds.json', '{"a__a-1": {"model_name_or_path": "m", "model_patch": ""}}'],
  ['trajectories in ATIF', 'x.json', '{"schema_version": "ATIF-v1.8", "steps": []'],
  ['a run report of the harness', 'm.r.json', '{"total_instances": 3, "submitted_ids": ['],
  ['a results.json of the leaderboard', 'results.json', '{"no_generation": [], "resolved" : ["a__a-1"]}'],
  ['an instance report of the harness', 'report.json', '{"a__a-1": {"resolved": true}}'],
  ['verdicts by instance (SWE-bench Pro)', 'eval_results.json', '{"a__a-1": true, "a__a-2": false}'],
  ['rates as the Hugging Face Hub keeps them', 'r.yaml', '- dataset:\n    id: org/name\n  value: 50\n'],
  [null, 'r.yaml', 'dataset: org/name\n'],
  [null, 'other.json', '{"a__a-1": 3}'],
  [null, 'text', 'resolved: yes'],
  [null, 'empty', ''],
])('a file: %s (%s)', (kind, name, head) => {
  expect(file(name, head)).toBe(kind);
});

test.each<[string | null, Readonly<Record<string, string>>]>([
  ['a results root of swebatch', { 'swebatch.db': '', 'r/trajectories/a/a.traj.json': '' }],
  ['a job folder of Harbor', { 'result.json': '{"n_total_trials": 3}', 't/result.json': '{}' }],
  ['a folder of logs of Inspect', { 'a.eval': '' }],
  ['a folder of logs of Inspect', { '2026-01-01T00-00-00_t_x.json': '{"eval": {"task": "t", "model": "m"' }],
  [
    'an entry of the leaderboard',
    { 'all_preds.jsonl': '', 'results/results.json': '{"resolved": []}', 'trajs/a.traj.json': '' },
  ],
  ['a folder of mini-swe-agent', { 'preds.json': '{}', 'a/a.traj.json': '' }],
  ['a folder of SWE-agent', { 'preds.json': '{}', 'a__a-1/a__a-1.traj': '' }],
  [
    "OpenHands' output.jsonl",
    { 'output.jsonl': '{"instance_id": "a", "test_result": {}, "history": []}', 'report.json': '' },
  ],
  [
    'a run of Terminal-Bench 1',
    { 'run_metadata.json': '{"run_id": "r", "agent_name": "a", "n_attempts": 1}' },
  ],
  ['predictions', { 'preds.json': '{}' }],
  ["predictions with the harness's reports", { 'predictions.jsonl': '', 'a__a-1/report.json': '' }],
  ['trajectories in ATIF', { 'trajectories/a/a.atif.json': '' }],
  ['instance reports of the harness', { 'run_evaluation/r/m/a__a-1/report.json': '' }],
  ['a run report of the harness', { 'm.r.json': '{"resolved_ids": []', 'other.json': '{}' }],
  [null, { 'result.json': '{"ok": true}', 'a/b.txt': '' }],
  [null, { '2026-01-01T00-00-00.json': '{"a": 1}' }],
  [null, { 'run_metadata.json': '{"run_id": 1}' }],
  [null, {}],
])('a folder: %s', (kind, files) => {
  expect(folder(files)).toBe(kind);
});
