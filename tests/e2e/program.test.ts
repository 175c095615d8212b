// A program starts, stops and resumes a run, and reads what it left: no terminal, no environment of this process.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import {
  compare,
  evaluate,
  openResults,
  planRun,
  type RunEvent,
  type RunOptions,
  resumeRun,
  startRun,
  UserError,
} from '../../src/index.ts';
import { toJson } from '../../src/report/render/document.ts';
import { cli, REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const ID = 'swebatch__cronwheel-23';
const bash = (command: string): string => `next\n\n\`\`\`bash\n${command}\n\`\`\``;
const SUBMIT = bash(
  'git add -A && git diff --cached > /tmp/p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/p',
);

/** A scripted model of the test's own, and the run that it plays. */
function scripted(replies: readonly string[]) {
  const out = tempDir();
  const dir = join(out, 'replies');
  const write = (next: readonly string[]) => writeFileSync(join(dir, `${ID}.json`), JSON.stringify(next));
  mkdirSync(dir, { recursive: true });
  write(replies);
  const options: RunOptions = {
    results: join(out, 'results'),
    name: 'r1',
    dataset: { subset: join(REPO, 'datasets/demo/demo.jsonl'), instances: [ID] },
    models: [`scripted:${dir}`],
    config: ['demo.yaml'],
  };
  return { options, write, results: options.results };
}
const env = { HOME: process.env.HOME };

describe('what is wrong rejects before anything is made', () => {
  test.each<[string, Partial<RunOptions>, RegExp]>([
    ['a key that does not exist', { settings: { agent: { step_limits: 3 } } }, /step_limits.*step_limit/],
    ['a dataset that is not there', { dataset: { subset: './absent.jsonl' } }, /the dataset cannot be used/],
    ['no replies', { models: ['scripted:./absent'] }, /there are no scripted replies at/],
  ])('%s', async (_what, wrong, text) => {
    const { options, results } = scripted([SUBMIT]);
    const started = startRun({ ...options, ...wrong, env });
    await expect(started).rejects.toThrow(UserError);
    await expect(started).rejects.toThrow(text);
    expect(() => openResults(results)).toThrow('no results database');
  });
});

describe('a plan', () => {
  // Nobody listens there: a plan says so, and needs no engine.
  const nowhere = { HOME: process.env.HOME ?? '', DOCKER_HOST: 'tcp://127.0.0.1:1' };

  test('says what a run would do, as `run --dry-run --json` does, and makes nothing', async () => {
    const { options, results } = scripted([SUBMIT]);
    const { problems, warnings, ...plan } = await planRun({ ...options, env: nowhere });
    expect([problems, warnings]).toEqual([[], []]);
    expect(plan).toMatchObject({
      runId: 'r1',
      trials: 1,
      instances: [{ instanceId: ID }],
      worstCaseDollars: 0,
      imagePlan: { problem: expect.stringContaining('does not answer') as string },
    });
    expect(() => openResults(results)).toThrow('no results database');
    const printed = await cli(
      ['run', '--dry-run', '--json', '--run-id', 'r1', '-o', results, '-i', ID, '-c', 'demo.yaml'].concat([
        '--subset',
        options.dataset!.subset!,
        '-m',
        options.models![0]!,
      ]),
      { env: nowhere },
    );
    expect(toJson(plan)).toEqual(JSON.parse(printed.stdout));
  });

  test('names what a run would be refused for, and rejects what cannot be planned', async () => {
    const { options } = scripted([SUBMIT]);
    const unpaid = await planRun({ ...options, models: ['gpt-5.4'], env: nowhere });
    expect(unpaid.problems).toEqual([expect.stringContaining('$OPENAI_API_KEY is not set')]);
    await expect(planRun({ ...options, dataset: { subset: './absent.jsonl' } })).rejects.toThrow(UserError);
  });
});

describe.skipIf(!docker)('a run of a program', () => {
  test('an AbortSignal cuts it short with the work captured, and resumeRun goes on', async () => {
    const { options, write, results } = scripted([bash('echo work >> README.md'), bash('sleep 60'), SUBMIT]);
    const stop = new AbortController();
    const run = await startRun({ ...options, env, signal: stop.signal });
    const seen: RunEvent['type'][] = [];
    for await (const event of run.events) {
      seen.push(event.type);
      // The second reply is there, so the first command has run.
      if (event.type === 'step' && event.step === 2) stop.abort();
    }
    expect(await run.result).toMatchObject({ status: 'interrupted', interruptedBy: 'the caller' });
    expect(seen).toEqual(
      expect.arrayContaining(['run_started', 'trial_started', 'step', 'stopping', 'run_ended']),
    );
    const db = new Database(join(results, 'swebatch.db'), { readonly: true });
    expect(
      db.prepare('SELECT exit_reason, CAST(captured_patch AS TEXT) AS patch FROM attempts').get(),
    ).toEqual({ exit_reason: 'cancelled', patch: expect.stringContaining('+work') as string });
    db.close();

    write([bash('echo more >> README.md'), SUBMIT]);
    const again = await resumeRun({ results, run: 'r1', env });
    expect(await again.result).toMatchObject({ status: 'complete', counts: { agent: 1 } });
  });

  test('what it leaves is graded, read and compared', async () => {
    const { options, results } = scripted([bash('echo work >> README.md'), SUBMIT]);
    const run = await startRun({ ...options, env });
    expect(await run.result).toMatchObject({ run: 'r1', status: 'complete', interruptedBy: null });

    const evaluation = await evaluate({ results, run: 'r1', again: true, env });
    const graded: string[] = [];
    for await (const event of evaluation.events) if (event.type === 'graded') graded.push(event.outcome);
    expect(graded).toEqual(['unresolved']);
    expect((await evaluation.result).reports[0]!.report).toMatchObject({ unresolved_instances: 1 });

    const read = openResults(results);
    expect(read.runs()).toMatchObject([
      { name: 'r1', status: 'complete', counts: { agent: 1 }, costNano: 0 },
    ]);
    expect(read.trials('last')).toMatchObject([{ instance_id: ID, outcome: 'unresolved' }]);
    expect(read.verdicts('r1')).toMatchObject([{ instance_id: ID, resolved: 0 }]);
    expect(read.report('r1')).toMatchObject({ run: 'r1' });
    expect(() => read.run('r2')).toThrow(UserError);
    read.close();
    expect(compare({ results, sides: ['r1', 'r1'] }).comparisons).toMatchObject([{ broken: [], fixed: [] }]);
  });
});
