// The datasets verb as a person calls it, against a local hub.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { rawRow } from '../dataset/rows.ts';
import { BIN } from '../support/cli.ts';
import { type FakeHub, startFakeHub } from '../support/fakeHub.ts';

let dir: string;
let hub: FakeHub;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-datasets-'));
  const rows = ['a__a-1', 'b__b-2'].map((id) => `${JSON.stringify(rawRow(id))}\n`).join('');
  hub = await startFakeHub({
    'SWE-bench/SWE-bench_Lite': { commit: 'f'.repeat(40), files: { 'data/test.jsonl': Buffer.from(rows) } },
  });
});
afterEach(async () => {
  await hub.close();
  rmSync(dir, { recursive: true });
});

function swebatch(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env.PATH, HF_HOME: dir, HF_ENDPOINT: hub.url };
  return new Promise((resolve) =>
    execFile(process.execPath, [BIN, 'datasets', ...args], { env, cwd: dir }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    ),
  );
}

test('pull, ls, show, verify and convert follow each other', async () => {
  expect(await swebatch('pull', 'lite')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('f'.repeat(40)),
  });
  const ls = await swebatch('ls', '--json');
  expect(JSON.parse(ls.stdout)).toContainEqual(
    expect.objectContaining({ name: 'lite', split: 'test', revision: 'f'.repeat(40) }),
  );
  const show = await swebatch('show', 'lite', '--json');
  expect(JSON.parse(show.stdout)).toMatchObject({ instances: 2, repositories: { 'acme/widgets': 2 } });
  expect((await swebatch('show', 'lite', '--ids')).stdout).toBe('a__a-1\nb__b-2\n');
  expect(await swebatch('verify', 'lite')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('checksum right'),
  });
  expect(await swebatch('convert', 'lite', 'out.jsonl')).toMatchObject({ code: 0 });
  expect(readFileSync(join(dir, 'out.jsonl'), 'utf8').split('\n')).toHaveLength(3);
  expect(await swebatch('convert', 'lite', 'out.jsonl')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('exists'),
  });
});

test('a damaged blob is found, exit 1', async () => {
  await swebatch('pull', 'lite');
  const blobs = join(dir, 'hub', 'datasets--SWE-bench--SWE-bench_Lite', 'blobs');
  const [blob] = readdirSync(blobs);
  const text = readFileSync(join(blobs, blob!), 'utf8');
  writeFileSync(join(blobs, blob!), text.replace('broken', 'brokem'));
  expect(await swebatch('verify', 'lite')).toMatchObject({ code: 1, stdout: expect.stringContaining('BAD') });
  // Cut in the middle of a row it cannot be read at all, and is damaged all the same.
  writeFileSync(join(blobs, blob!), text.slice(0, text.length / 2));
  expect(await swebatch('verify', 'lite')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('checksum is'),
    stderr: expect.stringContaining('1 file is damaged'),
  });
  rmSync(join(blobs, blob!));
  expect(await swebatch('verify', 'lite')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('its blob is missing'),
  });
});

test('mistakes exit 2 and say what to do', async () => {
  expect(await swebatch('show')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('needs the name'),
  });
  expect(await swebatch('show', 'verified')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('swebatch datasets pull verified'),
  });
  expect(await swebatch('pull', 'verified')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('401'),
  });
  expect(await swebatch('convert', 'lite', 'x.csv')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('.jsonl'),
  });
});
