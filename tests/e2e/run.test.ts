// The main job as a person calls it: the real program, real containers, the bundled dataset, a scripted model.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { cli, startCli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const DATASET = 'datasets/demo/demo.jsonl';
const base = (out: string, id: string, ...more: string[]) => [
  'run',
  '--subset',
  DATASET,
  '--model',
  'scripted:datasets/demo/replies',
  '-c',
  'agent.step_limit=15',
  '-w',
  '2',
  '-o',
  out,
  '--run-id',
  id,
  ...more,
];
/** A run is a process that ends by itself. */
const run = (args: readonly string[]) => startCli(args).done;
const read = (path: string) =>
  JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, unknown>>;

describe.skipIf(!docker)('swebatch run', () => {
  test('writes database, predictions and one trajectory an instance, and a second call skips what is sealed [M-50]', async () => {
    const out = tempDir();
    const first = await run(base(out, 'r1', '--slice', '0:2'));
    expect(first.code, first.stderr).toBe(0);
    const preds = read(join(out, 'r1', 'preds.json'));
    const ids = Object.keys(preds);
    expect(ids.length).toBe(2);
    for (const id of ids) {
      // What the harness demands of a row: the three keys, the inner id, a text.
      expect(preds[id]).toMatchObject({
        instance_id: id,
        model_name_or_path: 'scripted:datasets/demo/replies',
      });
      expect(typeof preds[id]!.model_patch).toBe('string');
      const trajectory = read(join(out, 'r1', 'trajectories', id, `${id}.traj.json`));
      expect(trajectory.trajectory_format).toBe('mini-swe-agent-1.1');
      expect((trajectory.info as { exit_status: string }).exit_status).toBe('Submitted');
      expect((trajectory.info as { submission: string }).submission).toBe(preds[id]!.model_patch);
    }
    const lines = readFileSync(join(out, 'r1', 'all_preds.jsonl'), 'utf8').split('\n');
    expect(lines.length).toBe(3);
    expect(lines.at(-1)).toBe('');

    const again = await run(base(out, 'r1', '--slice', '0:2'));
    expect(again.code).toBe(0);
    expect(again.stderr).toContain('0 of 2 trials to do');

    const db = new Database(join(out, 'swebatch.db'), { readonly: true });
    const count = (sql: string) => (db.prepare(sql).get() as { n: number }).n;
    expect(count('SELECT count(*) AS n FROM attempts')).toBe(2);
    expect(count(`SELECT count(*) AS n FROM model_calls WHERE state = 'ok' AND cost_nano = 0`)).toBe(
      count('SELECT sum(steps) AS n FROM attempts'),
    );
    expect(count('SELECT count(*) AS n FROM commands')).toBeGreaterThan(4);
    db.close();
  });

  test('--redo-existing adds an attempt and moves the final mark [M-51]', async () => {
    const out = tempDir();
    await run(base(out, 'r1', '--slice', '0:1'));
    expect((await run(base(out, 'r1', '--slice', '0:1', '--redo-existing'))).code).toBe(0);
    const db = new Database(join(out, 'swebatch.db'), { readonly: true });
    expect(
      db.prepare('SELECT number FROM attempts a JOIN trials t ON t.final_attempt_id = a.id').all(),
    ).toEqual([{ number: 2 }]);
    const [id] = Object.keys(read(join(out, 'r1', 'preds.json')));
    expect(existsSync(join(out, 'r1', 'trajectories', id!, `${id}.attempt-1.traj.json`))).toBe(true);
    db.close();
  });

  test('two arms and two epochs lie in folders of their own, each instance once in each', async () => {
    const out = tempDir();
    const config = join(out, 'arms.yaml');
    writeFileSync(
      config,
      'agent: {step_limit: 15}\nmodel: {model_name: "scripted:datasets/demo/replies"}\narms:\n- {name: a}\n- {name: b, agent: {step_limit: 2}}\n',
    );
    const result = await cli([
      'run',
      '--subset',
      DATASET,
      '-c',
      config,
      '--slice',
      '0:1',
      '--epochs',
      '2',
      '-w',
      '4',
      '-o',
      out,
      '--run-id',
      'r1',
    ]);
    expect(result.code, result.stderr).toBe(0);
    for (const part of ['a/epoch-1', 'a/epoch-2', 'b/epoch-1', 'b/epoch-2'])
      expect(Object.keys(read(join(out, 'r1', part, 'preds.json'))).length).toBe(1);
    const lines = JSON.parse((await cli(['ls', 'r1', '-o', out, '--json'])).stdout) as {
      arm: string;
      exit_reason: string;
    }[];
    expect(lines.map((l) => `${l.arm} ${l.exit_reason}`).sort()).toEqual([
      'a submitted',
      'a submitted',
      'b limit_steps',
      'b limit_steps',
    ]);
  });
});

describe('swebatch run, before anything starts', () => {
  test('--dry-run needs neither replies, registry nor engine', async () => {
    const result = await cli(
      ['run', '--subset', DATASET, '--model', 'scripted:./absent/replies', '--dry-run', '--json'],
      { env: { DOCKER_HOST: 'tcp://127.0.0.1:1' } },
    );
    expect(result.code).toBe(0);
    const plan = JSON.parse(result.stdout) as { instances: unknown[]; image_plan: unknown };
    expect(plan.instances.length).toBeGreaterThanOrEqual(12);
    expect(plan.image_plan).toEqual({ problem: expect.stringContaining('does not answer') });
  });

  test('T-56 all bad rows are listed with their lines and nothing is written', async () => {
    const dir = tempDir();
    const file = join(dir, 'bad.jsonl');
    writeFileSync(
      file,
      [
        '{"instance_id": "../../x", "problem_statement": "p"}',
        '',
        '{"instance_id": "ok-1", "problem_statement": "p", "base_commit": 7}',
        '{"instance_id": "$(touch /tmp/p)", "problem_statement": "p"}',
        'not json',
      ].join('\r\n'),
    );
    const out = join(dir, 'out');
    const result = await cli(['run', '--subset', file, '-m', 'scripted:x', '-o', out]);
    expect(result.code).toBe(2);
    for (const line of [1, 3, 4, 5]) expect(result.stderr).toContain(`line ${line}`);
    expect(existsSync(out)).toBe(false);
  });

  test.each([
    [['--slice', '5:5'], /0 instances selected/],
    [['--filter', 'nomatch'], /0 instances selected/],
    [['-i', 'swebatch__none-1'], /no instance named swebatch__none-1/],
    [['--workers', 'abc'], /--workers/],
    [['-c', 'agent.step_limits=3'], /agent\.step_limits.*did you mean agent\.step_limit/s],
    [['--workers', '0'], /--workers: must be a whole number of 1 or more/],
    [['--nosuch'], /there is no option --nosuch\n/],
    [['--cost-limt=3'], /there is no option --cost-limt; did you mean --cost-limit\?/],
    [['--no-evalute'], /there is no option --no-evalute; did you mean --no-evaluate\?/],
    [['stray.jsonl'], /unexpected argument "stray\.jsonl"/],
    [['--slice'], /--slice needs a value\n {2}"swebatch run --help"/],
    [['--config'], /--config needs a value/],
    [['--progress', 'much'], /--progress "much" must be one of auto, plain, json, none/],
    [['--run-id', '../x'], /--run-id/],
  ])('%j exits 2 and says why', async (more, text) => {
    const result = await cli([
      'run',
      '--subset',
      DATASET,
      '-m',
      'scripted:datasets/demo/replies',
      '-o',
      tempDir(),
      ...more,
    ]);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(text);
  });

  test('doctor names the fix for each failure', async () => {
    const result = await cli(['doctor', '-m', 'gpt-5.4', '-o', tempDir()], {
      env: { DOCKER_HOST: 'tcp://127.0.0.1:1', OPENAI_API_KEY: '' },
    });
    expect(result.code).toBe(2);
    expect(result.stdout).toMatch(/FAIL Docker.*fix: start the engine/s);
    expect(result.stdout).toMatch(/FAIL key.*OPENAI_API_KEY.*fix: export/s);
  });

  test('doctor asks what a run asks: what a run would take is no failure', async () => {
    const doctor = async (...more: string[]) =>
      cli(['doctor', '--json', '-o', tempDir(), ...more], { env: { OPENAI_API_KEY: 'k' } });
    const failures = async (...more: string[]) =>
      (JSON.parse((await doctor(...more)).stdout) as { ok: boolean; what: string; detail: string }[])
        .filter((f) => !f.ok)
        .map((f) => `${f.what}: ${f.detail}`);
    expect(await failures()).toEqual([]);
    expect(await failures('-m', 'nobody-knows-this')).toEqual([
      'price of arm nobody-knows-this: no price for "nobody-knows-this"',
    ]);
    expect(await failures('-m', 'nobody-knows-this', '-c', 'model.cost_tracking=ignore_errors')).toEqual([]);
    expect(await failures('-m', 'nobody-knows-this', '-c', 'agent.cost_limit=none')).toEqual([]);
    expect(await failures('-m', 'nobody/knows-this')).toEqual([
      expect.stringMatching(/no provider is known by the prefix of "nobody\/knows-this"/) as string,
    ]);
    expect(await failures('-m', 'scripted:./absent/replies', '-c', 'agent.agent_class=./nowhere.ts')).toEqual(
      [
        expect.stringContaining('./nowhere.ts cannot be loaded') as string,
        expect.stringContaining('there are no scripted replies at') as string,
      ],
    );
  });

  test('doctor wants no engine where commands run on this machine', async () => {
    const local = ['-m', 'scripted:datasets/demo/replies', '-c', 'environment.environment_class=local'];
    const result = await cli(['doctor', '-o', tempDir(), ...local], {
      env: { DOCKER_HOST: 'tcp://127.0.0.1:1' },
    });
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining('needs none') as string });
  });

  test('a plan says what a run would refuse, and is made all the same', async () => {
    const plan = await cli(['run', '--subset', DATASET, '-m', 'scripted:./absent/replies', '--dry-run']);
    expect(plan.code).toBe(0);
    expect(plan.stderr).toContain('warning: a run would be refused: model of arm');
  });

  test('what is missing on a line is named', async () => {
    expect((await cli(['resume'])).stderr).toContain('<run> is missing: swebatch resume <run>');
    expect((await cli(['datasets', 'nope'])).stderr).toContain(
      'action "nope" must be one of ls, show, add, check, pull, verify, convert',
    );
    expect((await cli(['ls', '-o', tempDir()])).stderr).toContain('start a run first');
  });

  test('a limit of the run can be none', async () => {
    const plan = async (limit: string) =>
      cli(['run', '--subset', DATASET, '-m', 'scripted:x', '--dry-run', '--json', '--cost-limit', limit]);
    expect((await plan('none')).code).toBe(0);
    expect((await plan('much')).stderr).toContain('--cost-limit: must be a number of dollars, or none');
  });

  test('an unknown verb is named with the closest one, whatever stands behind it', async () => {
    const result = await cli(['reprot', 'r1', '--json']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('there is no verb "reprot"; did you mean "report"?');
    expect(JSON.parse(result.stdout)).toMatchObject({ error: { kind: 'usage' } });
    expect((await cli([])).stderr).toContain('"swebatch --help" shows what there is');
  });

  test('every verb has help with an example [M-45]', async () => {
    const help = await cli(['--help']);
    const shown = [...help.stdout.matchAll(/^ {2}swebatch (\w+(?: \w+)?)/gm)].map((m) => m[1]!);
    // The less common ones are named below, on lines of their own.
    const named = /^more: ([^:]*?)\n\n/ms.exec(help.stdout)?.[1]?.split(/,\s+/) ?? [];
    const verbs = [...shown, ...named];
    expect(verbs).toEqual(
      expect.arrayContaining([
        'run',
        'resume',
        'evaluate',
        'report',
        'compare',
        'show',
        'ls',
        'export',
        'import',
        'replay',
        'verify',
        'images',
        'datasets',
        'baseline',
        'clean',
        'doctor',
        'view',
      ]),
    );
    for (const verb of verbs)
      expect((await cli([...verb.split(' '), '--help'])).stdout, verb).toContain('Examples:');
  });
});
