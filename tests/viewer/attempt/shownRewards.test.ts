// Rewards on the pages: of a run, of a comparison, of an attempt; and in no document of a suite without them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import type { AttemptDocument } from '../../../src/viewer/documents/attemptDocuments.ts';
import type { RunDocument } from '../../../src/viewer/documents/resources.ts';
import type { TrialPage } from '../../../src/viewer/documents/trialDocuments.ts';
import { startViewer, type Viewer } from '../../../src/viewer/server.ts';
import { type Happened, recordRun } from '../../report/recordedRun.ts';
import { browserAvailable, buildPage, launch } from '../browser.ts';

const ids = Array.from({ length: 8 }, (_, i) => `a__a-${i + 1}`);
const rewarded = (reward: number): Happened => ({
  outcome: reward >= 1 ? 'resolved' : 'unresolved',
  ...{ reward, rewards: { reward, found: 3 } },
});

describe.skipIf(!browserAvailable())('rewards', () => {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-rewards-'));
  let built: Awaited<ReturnType<typeof buildPage>>;
  let viewer: Viewer;
  const get = async <T>(path: string) => (await (await fetch(`${viewer.url}api/${path}`)).json()) as T;
  beforeAll(async () => {
    const store = openStore(join(dir, 'swebatch.db'));
    recordRun(store, { name: 'a', ids, happened: (id) => [rewarded(id === 'a__a-1' ? 1 : 0.25)] });
    recordRun(store, { name: 'b', ids, happened: (id) => [rewarded(id === 'a__a-1' ? 1 : 0.5)] });
    recordRun(store, { name: 'plain', ids, happened: () => [{ outcome: 'resolved' }] });
    store.close();
    built = await buildPage();
    viewer = await startViewer({ results: dir, port: 0, pageDir: built.dir });
  });
  afterAll(async () => {
    await viewer.close();
    await built.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  test('documents hold them, and those of a suite without rewards have no word of them', async () => {
    const run = await get<RunDocument>('runs/1');
    expect(run.summary.arms[0]!.score!.reward).toMatchObject({ n: 8, mean: (1 + 7 * 0.25) / 8 });
    expect(run.report.arms[0]!.reward).toEqual(run.summary.arms[0]!.score!.reward);
    expect((await get<TrialPage>('runs/1/trials/0')).rows.map(({ reward }) => reward)).toEqual([
      1,
      ...Array(7).fill(0.25),
    ]);
    const { evaluations } = await get<AttemptDocument>('attempts/2');
    expect(evaluations[0]).toMatchObject({
      reward: 0.25,
      rewards: [
        ['reward', 0.25],
        ['found', 3],
      ],
    });
    for (const path of ['runs/3', 'runs/3/trials/0', 'attempts/17'])
      expect(JSON.stringify(await get(path))).not.toContain('reward');
  });

  test('pages show them', async () => {
    const browser = await launch();
    try {
      const page = await browser.newPage();
      const said = async (hash: string, text: string) => {
        await page.goto(`${viewer.url}#/${hash}`);
        await page.getByText(text).first().waitFor();
      };
      await said('run/a', 'Mean reward 0.344 · 95 % interval');
      await said('compare?s=a|b', 'sign test p = .0156, sign-flip permutation (exact) p = .0156');
      await said('attempt/2?tab=patch', 'reward 0.250 (reward 0.250, found 3.000)');
    } finally {
      await browser.close();
    }
  });
});
