// Exported files: what leaves the database is atomic, complete, and in the forms other tools read.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { writeAtomically } from '../../src/base/files/atomicWrite.ts';
import { pathName } from '../../src/base/text/fileName.ts';
import {
  exitStatusesYaml,
  trajectoryJson,
  trajectoryOf,
  trajectoryPath,
} from '../../src/formats/miniSweAgent/writeTrajectory.ts';
import { predsJson, predsJsonl } from '../../src/formats/predictions.ts';
import { exportSummary } from '../../src/report/exportSummary.ts';
import { partsOf, predictionsOf } from '../../src/report/predictionsOf.ts';
import { attemptRecords, predictionRows } from '../../src/store/records/attemptBodies.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { type Happened, openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const folders: string[] = [];
const folder = () => {
  const made = mkdtempSync(join(tmpdir(), 'swebatch-report-'));
  folders.push(made);
  return made;
};
afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true });
});

function rowsOf(planned: PlannedRun) {
  const db = openMemory();
  const runId = recordRun(db, planned);
  return { rows: predictionRows(db, runId), attempts: [...attemptRecords(db, runId)] };
}

const mixed: PlannedRun = {
  ids: ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4', 'a__a-5'],
  happened: (id) =>
    ({
      'a__a-1': [{ patch: 'diff ü 😀\n' }],
      'a__a-2': [{ reason: 'limit_cost' as const }],
      'a__a-3': [{ reason: 'model_refusal' as const }],
      'a__a-4': [{ reason: 'env_died' as const, patch: 'half done' }],
    })[id] ?? [],
};

describe('predictions', () => {
  test('hold agent, limit and model endings; infra and not run are left out', () => {
    const found = predictionsOf(rowsOf(mixed).rows);
    expect(found.map((p) => [p.instance_id, p.model_patch])).toEqual([
      ['a__a-1', 'diff ü 😀\n'],
      ['a__a-2', ''],
      ['a__a-3', ''],
    ]);
  });
  test('with emit_empty the rest is there and empty, never with half-done work', () => {
    const found = predictionsOf(rowsOf(mixed).rows, true);
    expect(found.slice(3).map((p) => [p.instance_id, p.model_patch])).toEqual([
      ['a__a-4', ''],
      ['a__a-5', ''],
    ]);
  });
  test('a running trial is in neither', () => {
    const running = { model: 'm', instanceId: 'x', state: 'running', exitClass: null, modelPatch: null };
    expect(predictionsOf([running], true)).toEqual([]);
  });
  test('preds.json is an object by id in ASCII with one newline at the end', () => {
    const found = predictionsOf(rowsOf(mixed).rows);
    const written = predsJson(found);
    expect(written).toMatch(/[^\n]\n$/);
    expect(written).toMatch(/^[\n -~]*$/);
    expect(written).toContain('diff \\u00fc \\ud83d\\ude00\\n');
    expect(Object.keys(JSON.parse(written)['a__a-1'])).toEqual([
      'model_name_or_path',
      'instance_id',
      'model_patch',
    ]);
    expect(JSON.parse(written)['a__a-1'].model_patch).toBe('diff ü 😀\n');
  });
  test('all_preds.jsonl has one object a line and no blank line', () => {
    const lines = predsJsonl(predictionsOf(rowsOf(mixed).rows)).split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.map((l) => JSON.parse(l).instance_id)).toEqual(['a__a-1', 'a__a-2', 'a__a-3']);
    expect(predsJsonl([])).toBe('');
  });
  test('a lone surrogate does not leave the run [M-71]', () => {
    const written = predsJson([{ model_name_or_path: 'm', instance_id: 'a', model_patch: 'x\ud800y' }]);
    expect(JSON.parse(written).a.model_patch).toBe('x\ufffdy');
  });
});

test('exit_statuses.yaml reads as mini-swe-agent writes it, with our classes beside it [M-54]', () => {
  const written = exitStatusesYaml(rowsOf(mixed).rows);
  expect(written.startsWith('instances_by_exit_status:\n  LimitsExceeded:\n  - a__a-2\n')).toBe(true);
  expect(parse(written)).toEqual({
    instances_by_exit_status: {
      LimitsExceeded: ['a__a-2', 'a__a-3', 'a__a-4'],
      Submitted: ['a__a-1'],
    },
    instances_by_exit_class: {
      agent: { submitted: ['a__a-1'] },
      infra: { env_died: ['a__a-4'] },
      limit: { limit_cost: ['a__a-2'] },
      model: { model_refusal: ['a__a-3'] },
    },
  });
  expect(parse(exitStatusesYaml([]))).toEqual({ instances_by_exit_status: {}, instances_by_exit_class: {} });
});

describe('layout', () => {
  test('flat for one arm and one epoch, a folder for each otherwise', () => {
    const row = (arm: string, epoch: number) => ({ arm, epoch });
    expect(partsOf([row('a/b', 1), row('a/b', 1)]).map((p) => p.folder)).toEqual(['']);
    expect(partsOf([row('a/b', 1), row('c', 1), row('a/b', 2)]).map((p) => p.folder)).toEqual([
      'a__b/epoch-1',
      'c/epoch-1',
      'a__b/epoch-2',
    ]);
  });
  test('a name never leaves its folder', () => {
    expect(['..', '.', '', '../../etc', 'a\\b\n'].map(pathName)).toEqual([
      '_..',
      '_.',
      '_',
      '..__..__etc',
      'a_b_',
    ]);
  });
});

interface Trajectory {
  info: object;
  messages: Record<string, unknown>[];
  trajectory_format: string;
  instance_id: string;
}

describe('trajectory', () => {
  const conversation: Happened = {
    patch: 'the patch\n',
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'u' },
      { role: 'assistant', content: 'a', extra: { response: { id: 'x' }, cost: 0.1, timestamp: 5 } },
      { role: 'user', content: 'seen', extra: { returncode: 0, timestamp: 6, exception_info: '' } },
      {
        role: 'exit',
        content: 'the patch\n',
        extra: { exit_status: 'Submitted', submission: 'the patch\n' },
      },
    ],
    commands: [
      { messageSeq: 3, command: 'ls', output: 'raw \u001b[31m output' },
      { messageSeq: null, command: 'echo COMPLETE', output: 'COMPLETE\nthe patch\n' },
    ],
  };
  const of = (armConfig: object, happened: readonly Happened[] = [conversation]) =>
    rowsOf({ ids: ['a__a-1'], armConfig, happened: () => happened }).attempts;

  test('format 1.1 has the documented parts, with raw_output put back [M-19]', async () => {
    const found = (await trajectoryOf(of({ agent: { step_limit: 250 } })[0]!)) as unknown as Trajectory;
    expect(Object.keys(found)).toEqual(['info', 'messages', 'trajectory_format', 'instance_id']);
    expect(found.trajectory_format).toBe('mini-swe-agent-1.1');
    expect(found.instance_id).toBe('a__a-1');
    expect(found.info).toMatchObject({
      model_stats: { instance_cost: 1, api_calls: 5 },
      config: { agent: { step_limit: 250 }, agent_type: 'swebatch.agent.default' },
      exit_status: 'Submitted',
      submission: 'the patch\n',
      swebatch: { exit_reason: 'submitted', exit_class: 'agent', attempt: 1 },
    });
    expect(found.info).not.toHaveProperty('mini_version');
    expect(found.messages).toHaveLength(5);
    expect(found.messages[3]).toMatchObject({
      extra: { raw_output: 'raw \u001b[31m output', returncode: 0, timestamp: 6, exception_info: '' },
    });
    expect(found.messages[4]!.role).toBe('exit');
  });
  test('compat 1 writes format 1: four keys a message and the submission as the last user message [M-10]', async () => {
    const found = (await trajectoryOf(
      of({ agent: { compat: 'mini-swe-agent-1' } })[0]!,
    )) as unknown as Trajectory;
    expect(found.trajectory_format).toBe('mini-swe-agent-1');
    expect(found.info).toMatchObject({ mini_version: '1.17.5' });
    const { messages } = found;
    expect(messages.map((m) => m.role)).toEqual(['system', 'user', 'assistant', 'user', 'user']);
    expect(messages[2]).toEqual({
      role: 'assistant',
      content: 'a',
      timestamp: 5,
      extra: { response: { id: 'x' } },
    });
    expect(messages[3]).toEqual({ role: 'user', content: 'seen', timestamp: 6 });
    expect(messages[4]!.content).toBe('the patch\n');
  });
  test('an attempt that could not say its end gets an exit message; one that never began still has a file', async () => {
    const [died] = of({}, [{ reason: 'env_died', exitStatus: 'EnvironmentError', cost: null }]);
    const found = (await trajectoryOf(died!)) as { messages: unknown[]; info: { model_stats: unknown } };
    expect(found.messages).toEqual([
      {
        role: 'exit',
        content: 'EnvironmentError',
        extra: { exit_status: 'EnvironmentError', submission: '' },
      },
    ]);
    expect(found.info.model_stats).toMatchObject({ instance_cost: null });
  });
  test('omitted output is said, and text that no UTF-8 reader takes is replaced', async () => {
    const [attempt] = of({}, [
      {
        ...conversation,
        messages: [{ role: 'user', content: '\ud800', extra: {} }],
        commands: [{ messageSeq: 0, command: 'yes', output: 'yy', omitted: 7 }],
      },
    ]);
    const found = JSON.parse(await trajectoryJson(attempt!));
    expect(found.messages[0]).toMatchObject({
      content: '\ufffd',
      extra: { raw_output: 'yy', raw_output_omitted_bytes: 7 },
    });
  });
  test('earlier attempts lie beside the final one', () => {
    const attempts = of({}, [{ reason: 'env_died' }, conversation]);
    expect(attempts.map(trajectoryPath)).toEqual([
      'trajectories/a__a-1/a__a-1.attempt-1.traj.json',
      'trajectories/a__a-1/a__a-1.traj.json',
    ]);
  });
});

describe('writing a file', () => {
  test('replaces the whole file and leaves nothing beside it [M-50]', async () => {
    const path = join(folder(), 'deep', 'preds.json');
    await writeAtomically(path, 'one');
    await writeAtomically(path, 'two');
    expect(readFileSync(path, 'utf8')).toBe('two');
    expect(readdirSync(join(path, '..'))).toEqual(['preds.json']);
  });
  test('a reader never sees a part, with many writers at once [M-54]', async () => {
    const path = join(folder(), 'preds.json');
    const texts = Array.from({ length: 20 }, (_, i) => String(i % 10).repeat(200_000));
    await writeAtomically(path, texts[0]!);
    const seen = new Set<string>();
    let writing = true;
    const reader = (async () => {
      while (writing) {
        seen.add(readFileSync(path, 'utf8'));
        await new Promise(setImmediate);
      }
    })();
    await Promise.all(texts.map((t) => writeAtomically(path, t)));
    writing = false;
    await reader;
    expect(seen.size).toBeGreaterThan(0);
    for (const t of seen) expect(texts).toContain(t);
  });
  test('a failed write keeps the old file and removes its temporary one [M-71]', async () => {
    const parent = folder();
    const target = join(parent, 'x');
    // The target is a folder with something in it: rename must fail.
    await writeAtomically(join(target, 'keep'), 'old');
    await expect(writeAtomically(target, 'new')).rejects.toThrow();
    expect(readFileSync(join(target, 'keep'), 'utf8')).toBe('old');
    expect(readdirSync(parent)).toEqual(['x']);
  });
});

test('a written summary prices the token kinds, as the report on a terminal does', async () => {
  const db = openMemory();
  const runId = recordRun(db, { ids: ['a__a-1'], happened: () => [{ outcome: 'resolved' }] });
  const dir = folder();
  await exportSummary(loadRunData(db, runId)!, dir, (data) => () => ({
    input: data.arms.length,
    output: 2,
    cache_read: 0,
  }));
  const { arms } = JSON.parse(readFileSync(join(dir, 'summary.json'), 'utf8'));
  expect(arms[0].accounting.by_token_kind.slice(0, 2)).toMatchObject([
    { kind: 'input', tokens: 100, nano: 100_000 },
    { kind: 'cache_read', tokens: 300, nano: 0 },
  ]);
  expect(readdirSync(dir).toSorted()).toEqual(['summary.html', 'summary.json', 'summary.md']);
  db.close();
});
