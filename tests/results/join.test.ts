// A run in shards, each in its own results root, and joined: the figures of the run in one piece, and refusals of what does not fit.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, test } from 'vitest';
import { cli, startCli, tempDir } from '../support/cli.ts';

const IDS = Array.from({ length: 7 }, (_, i) => `r${i % 3}__p-${i + 1}`);
const bash = (command: string): string => `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\``;

const home = tempDir('swebatch-join-');
const at = (...path: string[]): string => join(home, ...path);

function prepare(): void {
  const row = { base_commit: 'a'.repeat(40), problem_statement: 'x', patch: '', test_patch: '' };
  const rows = IDS.map((instance_id, i) => ({
    instance_id,
    repo: instance_id.split('__')[0],
    difficulty: i % 2 ? 'easy' : 'hard',
    ...row,
    FAIL_TO_PASS: '[]',
    PASS_TO_PASS: '[]',
  }));
  writeFileSync(at('data.jsonl'), rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
  mkdirSync(at('replies'));
  for (const [i, id] of IDS.entries()) {
    const says = (content: string, k: number) => ({
      content: bash(content),
      usage: { prompt_tokens: 100 + i, completion_tokens: 5 + k },
    });
    const steps = Array.from({ length: 1 + (i % 3) }, (_, k) => says(`echo ${id} ${k}`, k));
    const end = says(`echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo diff of ${id}`, 9);
    writeFileSync(at('replies', `${id}.json`), JSON.stringify([...steps, end]));
  }
  mkdirSync(at('tree'));
  execFileSync('git', ['init', '-q'], { cwd: at('tree') });
  const model = { model_name: 'scripted:replies', prices: { input: 3, output: 15 } };
  const arms = [
    { name: 'a', model },
    { name: 'b', model, agent: { step_limit: 3 } },
  ];
  const environment = { environment_class: 'local', cwd: at('tree'), env: { BASH_ENV: '' } };
  writeFileSync(at('c.json'), JSON.stringify({ environment, run: { epochs: 2, workers: 4 }, arms }));
}

const RUN = ['run', '--subset', 'data.jsonl', '-c', 'c.json', '--progress', 'none'];
async function run(root: string, ...more: string[]): Promise<void> {
  const name = more.includes('--run-id') ? [] : ['--run-id', 'night'];
  const { code, stderr } = await startCli([...RUN, '-o', root, ...name, ...more], { cwd: home }).done;
  expect(code, stderr).toBe(0);
}

function sql<T = unknown>(root: string, ...statements: string[]): T[] {
  const db = new Database(at(root, 'swebatch.db'));
  try {
    for (const statement of statements.slice(0, -1)) db.exec(statement);
    const last = db.prepare(statements.at(-1)!);
    if (last.reader) return last.all() as T[];
    last.run();
    return [];
  } finally {
    db.close();
  }
}

/** Verdicts, times and counts that follow from the trial alone, so that files can be compared by their bytes. */
const NUMBER = `(SELECT CAST(substr(i.instance_id, instr(i.instance_id, '-') + 1) AS INTEGER) * 100 + t.epoch * 10 + m.position
  FROM trials t JOIN instances i ON i.id = t.instance_pk JOIN arms m ON m.id = t.arm_id WHERE t.id = attempts.trial_id)`;
const settle = (root: string) =>
  sql(
    root,
    `UPDATE attempts SET elapsed_ms = 1000 + ${NUMBER}, working_ms = 900 + ${NUMBER},
       started_at = '2026-11-21T00:00:00.000Z', ended_at = '2026-11-21T00:00:01.000Z'`,
    `UPDATE phases SET offset_ms = 0, duration_ms = 10`,
    `UPDATE model_calls SET cost_nano = 1000003 * step, latency_ms = 5, started_at = '2026-11-21T00:00:00.000Z'`,
    `INSERT INTO evaluations (run_id, trial_id, attempt_id, instance_id, model, patch_sha256, spec_hash, harness, outcome, resolved,
       resolved_strict, network, started_at, duration_ms, report)
     SELECT t.run_id, t.id, attempts.id, i.instance_id, m.model, attempts.patch_sha256, 's', 'v5', 'resolved', 1, 1, 'none',
       '2026-11-21T00:00:02.000Z', 7, NULL
     FROM attempts JOIN trials t ON t.id = attempts.trial_id JOIN instances i ON i.id = t.instance_pk JOIN arms m ON m.id = t.arm_id
     WHERE attempts.patch_sha256 IS NOT NULL`,
    `UPDATE evaluations SET outcome = 'unresolved', resolved = 0, resolved_strict = 0
     WHERE (SELECT ${NUMBER} FROM attempts WHERE id = evaluations.attempt_id) % 7 IN (1, 3, 4)`,
    `UPDATE runs SET created_at = '2026-11-21T00:00:00.000Z', finished_at = '2026-11-21T00:01:00.000Z'`,
  );

const SHARDS = [1, 2, 3, 4];
const roots = SHARDS.map((k) => `s${k}`);
const joinArgs = (...words: string[]) => cli(['join', ...words], { cwd: home });

beforeAll(async () => {
  prepare();
  await Promise.all([
    run('whole', '--cost-limit', '8'),
    ...SHARDS.map((k) => run(`s${k}`, '--shard', `${k}/4`, '--cost-limit', '2')),
  ]);
  for (const root of ['whole', ...roots]) settle(root);
  const { code, stderr, stdout } = await joinArgs(...roots, '-o', 'joined', '--json');
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ run: 'night', status: 'complete', instances: 7, trials: 28 },
    shards: [
      { shard: '1/4', trials: 8, open: 0 },
      { shard: '2/4' },
      { shard: '3/4' },
      { shard: '4/4', trials: 4 },
    ],
  });
});

describe('the joined run', () => {
  test.each([
    ['report', 'night', '--json'],
    ['report', 'night', '--history', '--json'],
    ['report', 'night', '--paper', '--json'],
    ['report', 'night', '--format', 'html'],
    ['compare', 'night', '--json'],
    ['compare', 'night', '--format', 'markdown'],
    ['export', 'night', 'csv'],
    ['export', 'night', 'junit'],
    ['export', 'night', 'config'],
    ['ls', 'night', '--class', 'agent'],
    ['verify', 'night'],
  ])('`%s %s %s` says what the run in one piece says, byte for byte', async (...words) => {
    const [whole, joined] = [
      await cli([...words, '-o', 'whole'], { cwd: home }),
      await cli([...words, '-o', 'joined'], { cwd: home }),
    ];
    expect(joined.code, joined.stderr).toBe(0);
    expect(plain(joined.stdout)).toBe(plain(whole.stdout));
    expect(whole.stdout.length).toBeGreaterThan(100);
  });

  test('has the files of the run in one piece', () => {
    // The verdicts here are written by the test, so no grading has left its reports and logs in the run in one piece.
    const files = (root: string): string[] =>
      readdirSync(at(root, 'night'), { recursive: true, encoding: 'utf8' })
        .filter((file) => !/logs|night\.json$/.test(file))
        .sort();
    expect(files('joined')).toEqual(files('whole'));
    expect(
      readFileSync(at('joined', 'night', 'a', 'epoch-1', 'scripted:replies.night.json'), 'utf8'),
    ).toContain('"total_instances": 7');
    for (const part of ['a/epoch-1', 'a/epoch-2', 'b/epoch-1', 'b/epoch-2'])
      for (const file of ['preds.json', 'all_preds.jsonl', 'exit_statuses.yaml'])
        expect(readFileSync(at('joined', 'night', part, file), 'utf8')).toBe(
          readFileSync(at('whole', 'night', part, file), 'utf8'),
        );
    const lines = readFileSync(at('joined', 'night', 'run.log'), 'utf8')
      .trimEnd()
      .split('\n');
    const times = lines.map((line) => (JSON.parse(line) as { time: string }).time);
    expect(times).toEqual(times.toSorted());
    expect(lines.length).toBe(
      roots.flatMap((root) =>
        readFileSync(at(root, 'night', 'run.log'), 'utf8')
          .trimEnd()
          .split('\n'),
      ).length,
    );
  });

  test('has every row of every shard, the budget of all, and what each machine said', () => {
    for (const table of [
      'trials',
      'attempts',
      'messages',
      'commands',
      'model_calls',
      'phases',
      'events',
      'evaluations',
    ]) {
      const count = (root: string) => sql<{ n: number }>(root, `SELECT count(*) AS n FROM ${table}`)[0]!.n;
      expect([table, count('joined')]).toEqual([table, roots.map(count).reduce((a, b) => a + b)]);
    }
    const [row] = sql<{ manifest: string; budget_nano: number; dataset_hash: string }>(
      'joined',
      'SELECT * FROM runs',
    );
    const [whole] = sql<{ manifest: string; dataset_hash: string }>('whole', 'SELECT * FROM runs');
    expect([row!.budget_nano, row!.dataset_hash]).toEqual([8e9, whole!.dataset_hash]);
    const manifest = JSON.parse(row!.manifest);
    const { command: _, ...stated } = JSON.parse(whole!.manifest);
    expect(manifest).toMatchObject({ dataset: stated.dataset, config: stated.config, images: stated.images });
    expect(manifest.shard).toBeUndefined();
    expect(manifest.joined.shards.map(({ shard }: { shard: string }) => shard)).toEqual(
      SHARDS.map((k) => `${k}/4`),
    );
    const at = sql<{ at: string }>('joined', 'SELECT at FROM events ORDER BY seq').map((event) => event.at);
    expect(at).toEqual(at.toSorted());
  });

  test('is judged as a night of its root, goes on as one run, and is deleted', async () => {
    cpSync(at('whole'), at('later'), { recursive: true });
    renameSync(at('later', 'night'), at('later', 'first'));
    sql('later', `UPDATE runs SET name = 'first'`);
    expect((await joinArgs(...roots, '-o', 'later')).code).toBe(0);
    const judged = await cli(['compare', 'first/a', 'night/a', '--gate', '-o', 'later'], { cwd: home });
    expect([judged.code, judged.stderr]).toEqual([0, expect.stringContaining('gate: no change shown')]);
    const same = await joinArgs(...roots, '-o', 'later');
    expect([same.code, same.stderr]).toEqual([0, expect.stringContaining('was joined before as run night')]);
    await run('later', '--cost-limit', '8');
    expect(sql('later', 'SELECT 1 FROM attempts WHERE number > 1')).toEqual([]);
    const again = await cli(['resume', 'night', '--retry', '--id', IDS[3]!, '-o', 'later'], { cwd: home });
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toContain('run night: complete');
    const gone = await cli(['delete', 'night', '-y', '-o', 'later'], { cwd: home });
    expect(gone.code, gone.stderr).toBe(0);
    expect(existsSync(at('later', 'night'))).toBe(false);
    expect(sql('later', 'SELECT name FROM runs')).toEqual([{ name: 'first' }]);
  });
});

/** The manifest's paths and the time of asking. */
const plain = (text: string): string => text.replaceAll('joined', 'whole');

test('of a shuffled run the order is that of the run in one piece', async () => {
  await Promise.all([
    run('shuffled', '--order', 'shuffle'),
    run('shuffled1', '--order', 'shuffle', '--shard', '1/2'),
    run('shuffled2', '--order', 'shuffle', '--shard', '2/2'),
  ]);
  expect((await joinArgs('shuffled1', 'shuffled2', '-o', 'shuffled12')).code).toBe(0);
  const order = (root: string) =>
    sql(
      root,
      `SELECT i.instance_id, m.name, t.epoch, t.position, i.position AS place FROM trials t
         JOIN instances i ON i.id = t.instance_pk JOIN arms m ON m.id = t.arm_id ORDER BY t.position`,
    );
  expect(order('shuffled12')).toEqual(order('shuffled'));
});

describe('a shard', () => {
  test('says everywhere that it is a part', async () => {
    const said = async (...words: string[]) => (await cli([...words, '-o', 's2'], { cwd: home })).stdout;
    expect(await said('ls')).toContain('night (shard 2/4)');
    expect(JSON.parse(await said('ls', '--json'))[0].shard).toBe('2/4');
    expect(await said('show', 'night')).toContain('a part: shard 2/4 of a run of 7 instances');
    expect(await said('report', 'night')).toMatch(/^Run night, shard 2\/4\n[\s\S]*a part: shard 2\/4/);
    expect(JSON.parse(await said('report', 'night', '--json')).shard).toEqual({
      number: 2,
      of: 4,
      instances: 7,
    });
    expect(await said('compare', 'night')).toContain('night/a (shard 2/4)');
    const dry = await cli([...RUN, '--shard', '2/4', '--dry-run'], { cwd: home });
    expect(dry.stdout).toMatch(/shard +2\/4: 2 of 7 instances \(numbers 2, 6, …\); budget, rpm and tpm/);
    expect(dry.stdout).toContain(IDS[1]);
    expect(dry.stdout).not.toContain(IDS[0]);
    const one = await cli([...RUN, '--shard', '4/4', '--dry-run'], { cwd: home });
    expect(one.stdout).toContain('4/4: 1 of 7 instances (number 4);');
  });

  test.each([
    [['baseline', 'set', 'night'], 'a baseline is a whole run'],
    [['compare', 'night/a', 'night/b', '--gate'], 'a gate judges whole runs'],
    [['report', 'night', '--paper'], 'a paper tells of whole runs'],
    [['export', 'night', 'submission', '--arm', 'a', '--split', 'verified'], 'an entry is a whole run'],
  ])('%j is refused', async (words, why) => {
    const { code, stderr } = await cli([...words, '-o', 's2'], { cwd: home });
    expect([code, stderr]).toEqual([2, expect.stringContaining(`night is shard 2/4 of a run, and ${why}`)]);
    expect(stderr).toContain('swebatch join DIR...');
  });

  test.each([
    [['--shard', '3/4'], 'run night is shard 2/4 of its selection, and shard 3/4 was asked for'],
    [[], 'run night is shard 2/4 of its selection, and no shard was asked for'],
    [['--shard', '8/7'], '"8/7" must be a shard K/N'],
    [['--shard', '8/8'], 'shard 8/8 is empty: 7 instances selected'],
    [['--shard', '2/4', '--baseline', 'last', '--no-evaluate'], '--baseline judges a whole run'],
  ])('goes on only as itself: %j', async (words, why) => {
    const { code, stderr } = await cli([...RUN, '-o', 's2', '--run-id', 'night', ...words], { cwd: home });
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
  });

  test('is exported as a configuration that runs the same shard', async () => {
    const config = await cli(['export', 'night', 'config', '-o', 's2'], { cwd: home });
    writeFileSync(at('shard.yaml'), config.stdout);
    const dry = await cli(['run', '-c', 'shard.yaml', '--dry-run', '--json'], { cwd: home });
    expect(JSON.parse(dry.stdout)).toMatchObject({ trials: 8, shard: { number: 2, of: 4, instances: 7 } });
  });
});

test('a shard that kill -9 ended is refused, goes on within itself, and joins', async () => {
  const args = [...RUN, '-o', 'k1', '--run-id', 'night', '--shard', '1/2', '-w', '1'];
  const killed = await startCli(args, { cwd: home, env: { SWEBATCH_CRASH_AT: 'command_recorded:5' } }).done;
  expect(killed.signal).toBe('SIGKILL');
  await run('k2', '--shard', '2/2');
  const refused = await joinArgs('k1', 'k2', '-o', 'k12');
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/shard 1\/2 in .*k1 was killed: resume it/),
  ]);
  expect(existsSync(at('k12'))).toBe(false);
  const resumed = await cli(['resume', 'night', '-o', 'k1'], { cwd: home });
  expect(resumed.code, resumed.stderr).toBe(0);
  const joined = await joinArgs('k1', 'k2', '-o', 'k12');
  expect(joined.code, joined.stderr).toBe(0);
  expect((await cli(['verify', 'night', '-o', 'k12'], { cwd: home })).code).toBe(0);
  for (const root of ['k1', 'k2'])
    for (const file of readdirSync(at(root, 'night'), { recursive: true, encoding: 'utf8' }))
      if (file.endsWith('.traj.json'))
        expect(readFileSync(at('k12', 'night', file), 'utf8'), file).toBe(
          readFileSync(at(root, 'night', file), 'utf8'),
        );
  expect(sql('k12', 'SELECT state, count(*) AS n FROM trials GROUP BY state')).toEqual([
    { state: 'sealed', n: 28 },
  ]);
  expect(sql('k12', `SELECT 1 FROM attempts WHERE exit_reason = 'orchestrator_lost'`)).toHaveLength(1);
});

test('folders are searched, shards of several runs are told apart by name, and unfinished shards join with a warning', async () => {
  for (const [i, root] of roots.entries())
    cpSync(at(root), at('artifacts', `job-${i}`, 'results'), { recursive: true });
  sql(
    'artifacts/job-2/results',
    `UPDATE trials SET state = 'pending', final_attempt_id = NULL`,
    `UPDATE runs SET status = 'budget'`,
  );
  const logs = join('night', 'a', 'epoch-1', 'logs', 'run_evaluation', 'night');
  mkdirSync(at('artifacts', 'job-1', 'results', logs), { recursive: true });
  symlinkSync(at('data.jsonl'), at('artifacts', 'job-1', 'results', logs, 'link'));
  await run('artifacts/job-0/results', '--run-id', 'other', '--shard', '1/1');
  const several = await joinArgs('artifacts', '-o', 'found');
  expect([several.code, several.stderr]).toEqual([
    2,
    expect.stringContaining('shards of several runs: night, other'),
  ]);
  const found = await joinArgs('artifacts', 's1/../artifacts/job-1', '--run-id', 'night', '-o', 'found');
  expect(found.code, found.stderr).toBe(0);
  expect(found.stderr).toMatch(/shard 3\/4 in .*job-2\/results is budget: 8 trials did not run/);
  expect(found.stderr).toMatch(/joined as run night: 28 trials of 7 instances, budget/);
  expect(readdirSync(at('found', logs))).toEqual(['run.json']);
  const resumed = await cli(['resume', 'night', '-o', 'found', '--cost-limit', 'none'], { cwd: home });
  expect(resumed.stderr).toContain('run night: complete');
});

describe('what does not fit is named, and nothing is written', () => {
  const changed = (name: string, from: string, ...statements: string[]): string => {
    cpSync(at(from), at(name), { recursive: true });
    if (statements.length > 0) sql(name, ...statements);
    return name;
  };
  beforeAll(async () => {
    await Promise.all([
      run('limit', '--shard', '4/4', '-c', 'agent.step_limit=9'),
      run('fewer', '--shard', '4/4', '--limit', '6'),
      run('thirds', '--shard', '3/3'),
      run('another', '--shard', '4/4', '--run-id', 'evening'),
    ]);
  });
  const three = ['s1', 's2', 's3'];
  test.each([
    ['a shard is missing', () => three, 'missing: shard 4/4'],
    ['two are missing', () => ['s1', 's4'], 'missing: shard 2/4, shard 3/4'],
    [
      'one is there twice',
      () => [...roots, changed('copy', 's2')],
      /shard 2\/4 is there 2 times: .*s2, .*copy/,
    ],
    [
      'other settings',
      () => [...three, 'limit'],
      /shard 1\/4 in .* and shard 4\/4 in .*limit differ:[\s\S]*arms\.a\.agent\.step_limit: was 100, now 9/,
    ],
    ['other rows', () => [...three, 'fewer'], /are of other rows \(7 and 6 selected\)/],
    ['another division', () => [...three, 'thirds'], 'divide the run differently'],
    ['another run', () => [...three, 'another'], 'shards of several runs: night, evening'],
    ['a whole run', () => [...roots, 'whole'], /whole: its run night is whole, and no shard/],
    ['no results root', () => [...roots, 'tree'], /tree is no results root, and holds none/],
    ['no folder', () => [...roots, 'nowhere'], 'there is no folder nowhere'],
    [
      'a patch was changed',
      () => [...three, changed('patched', 's4', `UPDATE attempts SET model_patch = 'other' WHERE id = 1`)],
      /record of shard 4\/4 in .*patched breaks a rule: each patch has the hash/,
    ],
    [
      'a trial is gone',
      () => [...three, changed('lost', 's4', 'PRAGMA foreign_keys = off', 'DELETE FROM trials WHERE id = 1')],
      /breaks a rule/,
    ],
    [
      'an instance is gone',
      () => [
        changed(
          'short',
          's1',
          'PRAGMA foreign_keys = off',
          'DELETE FROM trials WHERE instance_pk = 1',
          'DELETE FROM attempts WHERE trial_id NOT IN (SELECT id FROM trials)',
          'DELETE FROM instances WHERE id = 1',
        ),
        's2',
        's3',
        's4',
      ],
      /shard 1\/4 in .*short (breaks a rule|does not hold the rows)/,
    ],
    [
      'a row was changed',
      () => [...three, changed('rehashed', 's4', `UPDATE instances SET row_hash = 'f'`)],
      /rehashed does not hold the rows that it was planned with/,
    ],
    [
      'a shard number was changed',
      () => [
        ...three,
        changed(
          'renumbered',
          's1',
          `UPDATE runs SET manifest = replace(manifest, '"number":1,', '"number":4,')`,
        ),
      ],
      /renumbered does not hold the rows/,
    ],
    [
      'the whole was changed',
      () => [
        ...three,
        changed('whole2', 's4', `UPDATE runs SET manifest = json_set(manifest, '$.shard.rows_sha256', 'x')`),
      ],
      /are of other rows/,
    ],
    [
      'one was paused',
      () => [...three, changed('paused', 's4', `UPDATE runs SET status = 'paused'`)],
      /shard 4\/4 in .*paused was killed: resume it/,
    ],
    [
      'an attempt is open',
      () => [...three, changed('open', 's4', `UPDATE trials SET state = 'running' WHERE id = 1`)],
      /was killed: resume it/,
    ],
  ] as const)('%s', async (name, dirs, says) => {
    const out = `out of ${name}`;
    const { code, stderr } = await joinArgs(...dirs(), '-o', out);
    expect([code, stderr]).toEqual([
      2,
      says instanceof RegExp ? expect.stringMatching(says) : expect.stringContaining(says),
    ]);
    expect(existsSync(at(out))).toBe(false);
  });

  test('another run of that name, and a join into the root of a shard', async () => {
    const other = changed('newer', 's4', `UPDATE runs SET finished_at = '2026-11-22T00:00:00.000Z'`);
    const again = await joinArgs(...three, other, '-o', 'joined');
    expect([again.code, again.stderr]).toEqual([2, expect.stringMatching(/joined has a run night already/)]);
    const into = await joinArgs(...roots, '-o', 's1');
    expect([into.code, into.stderr]).toEqual([
      2,
      expect.stringMatching(/s1 has shard 1\/4 under the name night/),
    ]);
    expect(sql('joined', 'SELECT name FROM runs')).toEqual([{ name: 'night' }]);
  });
});
