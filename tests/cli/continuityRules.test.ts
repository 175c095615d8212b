// A run that goes on with another revision of its dataset is named, and refused where rows differ; so is one that an older version spread over engines.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { rawRow } from '../dataset/rows.ts';
import { cli, tempDir } from '../support/cli.ts';
import { type FakeHub, startFakeHub } from '../support/fakeHub.ts';

let dir: string;
let hub: FakeHub;
const REPO = 'SWE-bench/SWE-bench_Lite';
const bytes = (...rows: unknown[]) => ({
  'data/test.jsonl': Buffer.from(rows.map((r) => `${JSON.stringify(r)}\n`).join('')),
});

beforeEach(async () => {
  dir = tempDir('swebatch-continuity-');
  hub = await startFakeHub({
    [REPO]: { commit: '1'.repeat(40), files: bytes(rawRow('a__a-1'), rawRow('a__a-2')) },
  });
  const submit = '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```';
  writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies: [{ content: submit }] }));
});
afterEach(async () => {
  await hub.close();
  rmSync(dir, { recursive: true });
});

const swebatch = (...args: string[]) => cli(args, { cwd: dir, env: { HF_HOME: dir, HF_ENDPOINT: hub.url } });
const run = (...more: string[]) =>
  swebatch(
    'run',
    '--subset',
    'lite',
    '-m',
    'scripted:replies.json',
    '--environment-class',
    'local',
    '--run-id',
    'r',
    '--slice',
    ':1',
    ...more,
  ).then(({ code, stderr }) => ({ code, stderr }));
async function publish(commit: string, ...rows: unknown[]): Promise<void> {
  hub.repos[REPO] = { commit: commit.repeat(40), files: bytes(...rows) };
  await swebatch('datasets', 'pull', 'lite');
}

test('the same rows under a new revision go on with a note; changed tests are refused and named', async () => {
  await swebatch('datasets', 'pull', 'lite');
  await run();
  await publish('2', rawRow('a__a-1'), rawRow('a__a-2', { hints_text: 'elsewhere' }));
  expect(await run()).toMatchObject({
    stderr: expect.stringContaining(
      'revision was 111111111111, is 222222222222; the selected rows are the same',
    ),
  });
  expect((await swebatch('resume', 'r')).stderr).toContain(
    'lite is at revision 222222222222 here; run r goes on with the rows of 111111111111 that it recorded',
  );
  await publish('3', rawRow('a__a-1', { PASS_TO_PASS: ['t'] }), rawRow('a__a-2'));
  const refused = await run();
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('revision was 111111111111, is 333333333333');
  expect(refused.stderr).toContain('a__a-1: the row has changed (its tests or eval script differ');
});

test('a run on several engines is shown, reported, exported and compared as ever, and neither goes on nor begins', async () => {
  await swebatch('datasets', 'pull', 'lite');
  await run();
  const refused = /one engine.* Kubernetes.*run --shard K\/N, then swebatch join/;
  // As records of earlier versions have it: empty where the run had one engine.
  record([]);
  for (const { code, stderr } of [await run(), await swebatch('resume', 'r')])
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.not.stringMatching(refused) });
  record([{ host: 'ssh://lab1', slots: 8 }]);
  for (const { code, stderr } of [
    await run(),
    await swebatch('resume', 'r'),
    await run('-c', 'environment.hosts=[{"host":"ssh://lab1","slots":8}]'),
  ]) {
    expect(code).toBe(2);
    expect(stderr).toMatch(refused);
  }
  for (const verb of ['ls', 'show', 'report', 'export'])
    expect(await swebatch(verb, 'r')).toMatchObject({ code: 0 });
  expect((await swebatch('compare', 'r', 'r')).code).toBe(0);

  function record(hosts: object[]): void {
    using store = openStore(join(dir, 'results', 'swebatch.db'));
    store.exec(
      `UPDATE runs SET config = json_set(config, '$.arms[0].environment.hosts', json('${JSON.stringify(hosts)}'))`,
    );
    store.exec(
      `UPDATE arms SET config = json_set(config, '$.environment.hosts', json('${JSON.stringify(hosts)}'))`,
    );
  }
});
