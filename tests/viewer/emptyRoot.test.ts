// `swebatch view` opens before the first run: the server waits for the record, and says when it is there.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RunList } from '../../src/viewer/documents/resources.ts';
import { startViewer, type Viewer } from '../../src/viewer/server.ts';
import { addRun, openFixture } from './fixture.ts';

let dir: string;
let viewer: Viewer | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-empty-'));
  mkdirSync(join(dir, 'page', 'assets'), { recursive: true });
  writeFileSync(join(dir, 'page', 'index.html'), '<div id="app"></div>');
  writeFileSync(join(dir, 'page', 'assets', 'viewer.js'), 'export {};');
});
afterEach(async () => {
  await viewer?.close();
  viewer = undefined;
  rmSync(dir, { recursive: true, force: true });
});
const start = async (results: string) => {
  viewer = await startViewer({ results, port: 0, pageDir: join(dir, 'page'), pollMs: 10 });
  return viewer;
};
const runs = async () => (await (await fetch(`${viewer!.url}api/runs`)).json()) as RunList;

test('an empty root, and one that does not exist, show no runs; the first run appears while somebody watches', async () => {
  const root = join(dir, 'results');
  await start(root);
  expect(await runs()).toEqual({ title: 'results', madeAt: null, runs: [] });
  expect((await fetch(`${viewer!.url}api/runs/1`)).status).toBe(404);
  const live = await fetch(`${viewer!.url}api/live`);
  const reader = live.body!.pipeThrough(new TextDecoderStream()).getReader();
  let heard = (await reader.read()).value!;
  mkdirSync(root);
  const store = openFixture(root);
  addRun(store, { name: 'first', instances: 2, steps: 1 });
  while (!heard.includes('event: change')) {
    const { value, done } = await reader.read();
    if (done) break;
    heard += value;
  }
  expect((await runs()).runs.map((run) => run.name)).toEqual(['first']);
  await reader.cancel();
  store.close();
});

test('a record that cannot be read while somebody watches is said, and the viewer goes on', async () => {
  await start(dir);
  writeFileSync(
    join(dir, 'swebatch.db'),
    'this is a text and no database, and long enough to be read as one',
  );
  const live = await fetch(`${viewer!.url}api/live`);
  expect(live.status).toBe(500);
  expect(await live.text()).toContain('swebatch.db');
  rmSync(join(dir, 'swebatch.db'));
  expect((await runs()).runs).toEqual([]);
});

test('a file that a killed process left empty is no record yet; one that is no record is an error', async () => {
  writeFileSync(join(dir, 'swebatch.db'), '');
  await start(dir);
  expect((await runs()).runs).toEqual([]);
  await viewer!.close();
  writeFileSync(
    join(dir, 'swebatch.db'),
    'this is a text and no database, and long enough to be read as one',
  );
  await expect(start(dir)).rejects.toThrow(/swebatch\.db/);
});
