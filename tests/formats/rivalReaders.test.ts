// The same file says the same to `evaluate`, `compare`, `import` and `replay`. Each row was read in two or three ways before they shared a
// reader; what each comes to now is what the official harness makes of it.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { readRecording } from '../../src/agent/replay/readRecording.ts';
import { parseForeignJson } from '../../src/formats/foreignFile.ts';
import { runFromInstanceReports } from '../../src/formats/harness/reports.ts';
import { readMiniRun } from '../../src/formats/miniSweAgent/miniSweAgent.ts';
import { parsePredictions } from '../../src/formats/predictions.ts';
import { verdictsIn } from '../../src/formats/verdicts.ts';
import { readSide } from '../../src/report/compare/side.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-rivals-'));
afterAll(() => rmSync(home, { recursive: true }));
let folder = home;
let serial = 0;
beforeEach(() => {
  folder = join(home, String(++serial));
});
function write(path: string, text: string | Uint8Array): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const PATCH = 'diff --git a/x b/x\n';
type Seen = 'patch' | 'empty' | 'refused';

/** What each entrance makes of the instance a-1 of a predictions file; g-1 is graded, so that an empty patch shows. */
const ENTRANCES: Record<string, (name: string, text: string | Uint8Array) => Seen> = {
  evaluate(name, text) {
    const read = parsePredictions(text, name);
    const found = read.ok && read.predictions.find((p) => p.instance_id === 'a-1');
    return found ? (found.model_patch ? 'patch' : 'empty') : 'refused';
  },
  compare(name, text) {
    const file = write(name, text);
    write('logs/run_evaluation/r/m/g-1/report.json', '{"g-1": {"resolved": true}}');
    try {
      const found = readSide(file).results.get('a-1');
      return found ? (found.why === 'not_graded' ? 'patch' : 'empty') : 'refused';
    } catch {
      return 'refused';
    }
  },
  import(name, text) {
    write(name, text);
    const { problems = [], instances } = readMiniRun(folder) as ReturnType<typeof readMiniRun> & {
      problems?: readonly string[];
    };
    const found = instances.find((i) => i.instanceId === 'a-1');
    return found && problems.length === 0 ? (found.modelPatch ? 'patch' : 'empty') : 'refused';
  },
};

const GRADED = { instance_id: 'g-1', model_name_or_path: 'm', model_patch: PATCH };
const lines = (...rows: unknown[]): [string, string] => [
  'all_preds.jsonl',
  [...rows, GRADED].map((row) => `${JSON.stringify(row)}\n`).join(''),
];
const list = (...rows: unknown[]): [string, string] => ['preds.json', JSON.stringify([...rows, GRADED])];
const map = (row: unknown): [string, string] => ['preds.json', JSON.stringify({ 'a-1': row, 'g-1': GRADED })];
const latin1 = (text: string): Uint8Array => Buffer.from(text, 'latin1');
const row = { instance_id: 'a-1', model_name_or_path: 'm', model_patch: PATCH };

describe.each(Object.keys(ENTRANCES))('predictions, as %s sees them', (entrance) => {
  test.each<[what: string, file: [string, string | Uint8Array], Seen]>([
    [
      'a patch that is not UTF-8',
      ['preds.json', latin1(list({ ...row, model_patch: `${PATCH}+é` })[1])],
      'refused',
    ],
    [
      'a line that is not UTF-8',
      ['all_preds.jsonl', latin1(lines({ ...row, model_patch: `${PATCH}+é` })[1])],
      'refused',
    ],
    ['of two rows the later counts', lines({ ...row, model_patch: '' }, row), 'patch'],
    ['of two rows in a list the later counts', list(row, { ...row, model_patch: '' }), 'empty'],
    [
      'of two equal keys the later counts',
      [
        'preds.json',
        `{"a-1": {"model_patch": ""}, "g-1": ${JSON.stringify(GRADED)}, "a-1": ${JSON.stringify(row)}}`,
      ],
      'patch',
    ],
    ['fix_patch of Multi-SWE-bench', list({ instance_id: 'a-1', fix_patch: PATCH }), 'patch'],
    [
      'Multi-SWE-bench has no id column',
      lines({ ...row, instance_id: undefined, org: 'a', repo: 'b', number: 1 }, row),
      'patch',
    ],
    ['patch and prefix of SWE-bench Pro', lines({ instance_id: 'a-1', patch: PATCH, prefix: 'm' }), 'patch'],
    [
      'a null model_patch counts before another key',
      lines({ instance_id: 'a-1', model_patch: null, patch: PATCH }),
      'empty',
    ],
    ['SWE-bench-Live has the id in the key alone', map({ model_patch: PATCH }), 'patch'],
    ['a null patch is an empty one', lines({ ...row, model_patch: null }), 'empty'],
    [
      'no patch at all is none, and not an empty one',
      lines({ instance_id: 'a-1', model_name_or_path: 'm' }),
      'refused',
    ],
    ['a key that nobody knows is no patch', map({ ...row, model_patch: undefined, diff: PATCH }), 'refused'],
    ['a patch that is a number', lines({ ...row, model_patch: 7 }), 'refused'],
    ['a patch that is an object', map({ ...row, model_patch: { diff: PATCH } }), 'refused'],
    ['a model that is a number', lines({ ...row, model_name_or_path: 7 }), 'refused'],
    ['an id that is a number, under a key that is text', map({ ...row, instance_id: 7 }), 'refused'],
    ['a row that is null', ['preds.json', JSON.stringify({ 'a-1': null, 'g-1': GRADED })], 'refused'],
    ['an id that leaves its folder', lines(row, { ...row, instance_id: '../../a-1' }), 'refused'],
    ['a byte order mark', ['preds.json', `\uFEFF${list(row)[1]}`], 'patch'],
    ['a byte order mark before lines', ['all_preds.jsonl', `\uFEFF${lines(row)[1]}`], 'patch'],
    [
      'blank lines and CRLF',
      ['all_preds.jsonl', `\r\n${lines(row)[1].replaceAll('\n', '\r\n\r\n')}`],
      'patch',
    ],
    [
      "Python's NaN in another key",
      ['all_preds.jsonl', lines(row)[1].replace('{', '{"cost": NaN, ')],
      'patch',
    ],
    ['a list in a file of lines', ['all_preds.jsonl', list(row)[1]], 'refused'],
    ['one prediction alone', ['preds.json', JSON.stringify(row)], 'refused'],
    [
      'a patch without git headers',
      lines({ ...row, model_patch: '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n' }),
      'patch',
    ],
  ])('%s', (_what, [name, text], seen) => {
    expect(ENTRANCES[entrance]!(name, text)).toBe(seen);
  });
});

describe('run reports', () => {
  /** Verdict for import; for compare a score or why there is none. */
  function both(report: object | string): [string | undefined, string | undefined] {
    const path = write('m.run.json', typeof report === 'string' ? report : JSON.stringify(report));
    const or = (said: () => string | undefined): string | undefined => {
      try {
        return said();
      } catch {
        return 'refused';
      }
    };
    return [
      or(() => verdictsIn(path).verdicts.get('a-1')?.verdict),
      or(() => {
        const found = readSide(path).results.get('a-1');
        return found && (found.why ?? (found.scores[0] ? 'resolved' : 'unresolved'));
      }),
    ];
  }
  const ids = { resolved_ids: ['g-1'] };
  test.each<[what: string, report: object | string, verdict: string, seen: string]>([
    [
      'an empty patch is never an error',
      { ...ids, empty_patch_ids: ['a-1'], error_ids: ['a-1'] },
      'empty_patch',
      'unresolved',
    ],
    ['what completed and has no verdict is an error', { ...ids, completed_ids: ['a-1'] }, 'error', 'error'],
    [
      'what was submitted and not asked for is incomplete',
      { ...ids, submitted_ids: ['a-1'] },
      'incomplete',
      'incomplete',
    ],
    ['a schema version in quotes', { resolved_ids: ['a-1'], schema_version: '2' }, 'resolved', 'resolved'],
    ['no schema version', { resolved_ids: ['a-1'] }, 'resolved', 'resolved'],
    ['a schema version that is none', { resolved_ids: ['a-1'], schema_version: 'two' }, 'refused', 'refused'],
    ['a total that is negative', { resolved_ids: ['a-1'], total_instances: -1 }, 'refused', 'refused'],
    ['an id that is a number', { resolved_ids: ['a-1'], unresolved_ids: [7] }, 'refused', 'refused'],
    [
      'an id that leaves its folder',
      { resolved_ids: ['a-1'], unresolved_ids: ['../../x'] },
      'refused',
      'refused',
    ],
    [
      'reasons that are none',
      { resolved_ids: ['a-1'], failure_reasons: { 'a-2': null } },
      'refused',
      'refused',
    ],
    ['a byte order mark', `\uFEFF${JSON.stringify({ resolved_ids: ['a-1'] })}`, 'resolved', 'resolved'],
    ['what sb-cli failed', { ...ids, pending_ids: [], failed_ids: ['a-1'] }, 'error', 'error'],
  ])('%s', (_what, report, verdict, seen) => {
    expect(both(report)).toEqual([verdict, seen]);
  });
});

describe('instance reports', () => {
  async function both(report: string | null): Promise<[string | undefined, string | undefined]> {
    write('logs/run_evaluation/r/m/a-1/run_instance.log', 'x');
    if (report !== null) write('logs/run_evaluation/r/m/a-1/report.json', report);
    const { verdicts } = await runFromInstanceReports(folder);
    const found = readSide(write('all_preds.jsonl', lines(row)[1])).results.get('a-1');
    return [
      verdicts.get('a-1')?.verdict,
      found && (found.why ?? (found.scores[0] ? 'resolved' : 'unresolved')),
    ];
  }
  test.each<[what: string, report: string | null, verdict: string]>([
    ['resolved is all that a verdict needs', '{"a-1": {"resolved": true}}', 'resolved'],
    ['without the id around it', '{"resolved": true, "patch_successfully_applied": true}', 'resolved'],
    ['with the id and without: the id counts', '{"resolved": false, "a-1": {"resolved": true}}', 'resolved'],
    ['a byte order mark', '\uFEFF{"a-1": {"resolved": true}}', 'resolved'],
    ['an empty file', '', 'error'],
    ['half a file', '{"a-1": {"resol', 'error'],
    ['a verdict that is text', '{"a-1": {"resolved": "true"}}', 'error'],
    ['no report at all', null, 'error'],
  ])('%s', async (_what, report, verdict) => {
    expect(await both(report)).toEqual([verdict, verdict]);
  });
});

describe('trajectories', () => {
  const whole = {
    info: {
      config: { agent: { system_template: 's', instance_template: 'i' }, model: { model_name: 'm' } },
      model_stats: { instance_cost: 1, api_calls: 1 },
      exit_status: 'Submitted',
      submission: PATCH,
    },
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'i' },
    ],
    trajectory_format: 'mini-swe-agent-1',
    instance_id: 'a-1',
  };
  function both(text: string): [string | undefined, string | undefined] {
    write('a-1/a-1.traj.json', text);
    const { instances } = readMiniRun(folder);
    let replayed: string | undefined;
    try {
      const { format, exitStatus } = readRecording(parseForeignJson(text).value);
      replayed = `${format} ${exitStatus}`;
    } catch {
      replayed = 'refused';
    }
    const found = instances.find((i) => i.instanceId === 'a-1');
    return [found?.exitStatus ? `${found.format} ${found.exitStatus}` : 'refused', replayed];
  }
  const without = (key: keyof typeof whole) => ({ ...whole, [key]: undefined });
  const inInfo = (more: object) => ({ ...whole, info: { ...whole.info, ...more } });
  test.each<[what: string, trajectory: object | string, seen: string]>([
    ['format 1', whole, 'mini-swe-agent-1 Submitted'],
    ['format 1.1', { ...whole, trajectory_format: 'mini-swe-agent-1.1' }, 'mini-swe-agent-1.1 Submitted'],
    ['before 1.4 no format was named', without('trajectory_format'), 'mini-swe-agent-1 Submitted'],
    ['without its statistics', inInfo({ model_stats: undefined }), 'mini-swe-agent-1 Submitted'],
    [
      'without its count of calls',
      inInfo({ model_stats: { instance_cost: 1 } }),
      'mini-swe-agent-1 Submitted',
    ],
    ['a byte order mark', `\uFEFF${JSON.stringify(whole)}`, 'mini-swe-agent-1 Submitted'],
    [
      "Python's NaN for the cost",
      JSON.stringify(whole).replace('"instance_cost":1', '"instance_cost":NaN'),
      'mini-swe-agent-1 Submitted',
    ],
    ['a format that nobody knows', { ...whole, trajectory_format: 'mini-swe-agent-9' }, 'refused'],
    ['an id that leaves its folder', { ...whole, instance_id: '../../x' }, 'refused'],
    ['an exit status that is a number', inInfo({ exit_status: 7 }), 'refused'],
    ['a configuration that is text', inInfo({ config: 'x' }), 'refused'],
    ['messages that are none', { ...whole, messages: {} }, 'refused'],
  ])('%s', (_what, trajectory, seen) => {
    expect(both(typeof trajectory === 'string' ? trajectory : JSON.stringify(trajectory))).toEqual([
      seen,
      seen,
    ]);
  });
});
