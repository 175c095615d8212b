/// <reference lib="dom" />
// Every number on the page of a run and of a comparison is one that `report --json` and `compare --json` say.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatCost } from '../../src/money.ts';
import { compareDocument } from '../../src/report/compare/compareDocument.ts';
import { armScores } from '../../src/report/measure/score.ts';
import { count, duration } from '../../src/report/render/document.ts';
import { summaryDocument } from '../../src/report/render/summaryDocument.ts';
import { compare } from '../../src/results/compareSources.ts';
import { openResults } from '../../src/results/openResults.ts';
import { openStore } from '../../src/store/open.ts';
import { scoreRows } from '../../src/store/records/runData.ts';
import type { ComparedDocument } from '../../src/viewer/documents/compared.ts';
import type { RunDocument, RunList } from '../../src/viewer/documents/resources.ts';
import { startViewer, type Viewer } from '../../src/viewer/server.ts';
import { recordRun } from '../report/recordedRun.ts';
import { browserAvailable, buildPage, launch } from './browser.ts';
import { addRun, openFixture } from './fixture.ts';

const RUNS = ['epochs', 'arms', 'both', 'rewards', 'imported', 'ungraded'];
const PAIRS = [
  ['epochs', 'both/second'],
  ['arms/first', 'arms/second'],
  ['rewards', 'more'],
  ['imported', 'arms/first'],
] as const;

/** Everything in a document that a page may write: as a number, a share, points, money, tokens, a time. */
function writings(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === 'number' && Number.isFinite(value)) {
    const size = Math.abs(value);
    for (const text of [
      ...[String(size), (100 * size).toFixed(1), size.toFixed(3), size.toFixed(2), size.toFixed(4)],
      ...[
        size.toFixed(1),
        size.toLocaleString('en-US'),
        formatCost(Math.round(size)),
        count(size),
        duration(size),
      ],
    ])
      for (const number of numbersIn(text)) found.add(number);
  } else if (Array.isArray(value)) {
    found.add(String(value.length));
    for (const one of value) writings(one, found);
  } else if (typeof value === 'object' && value !== null)
    for (const one of Object.values(value)) writings(one, found);
  else if (typeof value === 'string') for (const number of numbersIn(value)) found.add(number);
  return found;
}

const numbersIn = (text: string): string[] =>
  [...text.replaceAll(/(\d),(?=\d{3}\b)/g, '$1').matchAll(/\d+(?:\.\d+)?|(?<!\d)\.\d+/g)].map(([number]) =>
    number.startsWith('.') ? `0${number}` : number,
  );

/** What the words of a page say of themselves: 95 % intervals, Newcombe's method 10, 80 % power. */
const OF_WORDS = ['95', '10', '80'];
describe.skipIf(!browserAvailable())('one figure on every surface', () => {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-figures-'));
  let built: Awaited<ReturnType<typeof buildPage>>;
  let browser: Browser;
  let viewer: Viewer;
  let page: Page;
  beforeAll(async () => {
    const store = openFixture(dir);
    addRun(store, { name: 'epochs', instances: 14, steps: 2, epochs: 3 });
    addRun(store, { name: 'arms', instances: 14, steps: 2, arms: ['first', 'second'], seed: 2, day: 1 });
    addRun(store, {
      name: 'both',
      instances: 14,
      steps: 2,
      arms: ['first', 'second'],
      epochs: 2,
      seed: 3,
      day: 2,
    });
    addRun(store, { name: 'imported', instances: 14, steps: 2, imported: true, seed: 4, day: 3 });
    const bare = addRun(store, { name: 'ungraded', instances: 5, steps: 2, day: 4 });
    store
      .prepare('DELETE FROM evaluations WHERE trial_id IN (SELECT id FROM trials WHERE run_id = ?)')
      .run(bare);
    const ids = Array.from({ length: 9 }, (_, i) => `a__a-${i + 1}`);
    for (const [name, low] of [
      ['rewards', 0.25],
      ['more', 0.5],
    ] as const)
      recordRun(store, {
        name,
        ids,
        happened: (id) => {
          const reward = id === 'a__a-1' ? 1 : low;
          return [
            { outcome: reward === 1 ? 'resolved' : 'unresolved', reward, rewards: { reward, found: 3 } },
          ];
        },
      });
    store.close();
    built = await buildPage();
    browser = await launch();
    viewer = await startViewer({ results: dir, port: 0, pageDir: built.dir });
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await viewer?.close();
    await built?.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  const get = async <T>(path: string) => (await (await fetch(`${viewer.url}api/${path}`)).json()) as T;
  const plainJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  const report = (run: string) => {
    const results = openResults(dir);
    const found = results.report(run);
    results.close();
    return found;
  };
  /** Numbers of a part of the page that none of `said` says. */
  const strange = async (selector: string, said: unknown): Promise<string[]> => {
    const known = writings(said);
    for (const word of OF_WORDS) known.add(word);
    const texts = await page.locator(selector).allInnerTexts();
    expect(texts.join('').length, selector).toBeGreaterThan(20);
    return texts
      .flatMap(numbersIn)
      .filter((number) => !known.has(number) && !known.has(String(Number(number))));
  };
  const open = async (hash: string, ready: string) => {
    await page.goto('about:blank');
    await page.goto(`${viewer.url}#/${hash}`);
    await page.locator(ready).first().waitFor();
    await page.evaluate(() => {
      for (const details of document.querySelectorAll('details')) details.open = true;
    });
  };

  test.each(RUNS)('of run %s: the document is the report, and the page says its numbers', async (name) => {
    const { runs } = await get<RunList>('runs');
    const run = runs.find((one) => one.name === name)!;
    const said = report(name);
    const document = await get<RunDocument>(`runs/${run.id}`);
    expect(document.report).toEqual(plainJson(said));
    await open(`run/${name}`, '.rate');
    expect(await strange('.rates', said)).toEqual([]);
    if (name !== 'ungraded') expect(await strange('.forest', said)).toEqual([]);
    expect(await strange('[aria-label="Money and tokens by arm"]', said)).toEqual([]);
    expect(document.words).toEqual(plainJson(summaryDocument(said)));
    expect(await strange('.blocks', [said, document.words])).toEqual([]);
  });

  test('with epochs the headline is the mean over instances, and no number of trials is its n', async () => {
    const [arm] = report('epochs').arms;
    await open('run/epochs', '.rate');
    const text = (await page.locator('.rates').allInnerTexts()).join().replaceAll(/\s+/g, ' ');
    const { mean, interval, n } = arm!.estimate!;
    const share = (x: number) => (100 * x).toFixed(1);
    expect(text).toContain(`${share(mean)} % resolved`);
    expect(text).toContain(
      `mean of ${n} instances over 3 epochs · 95 % interval ${share(interval.low)} to ${share(interval.high)} %`,
    );
    expect(n).toBeLessThan(arm!.resolved.n);
  });

  test('the list of runs has the score of each arm, as ls has it', async () => {
    const { runs } = await get<RunList>('runs');
    for (const { id, name, arms } of runs) {
      const said = report(name);
      const listed = arms.map(({ score }) => score!);
      for (const [i, { resolved, overInstances, valid, planned, reward }] of listed.entries())
        expect([name, { resolved, estimate: overInstances, valid, planned, reward }]).toEqual([
          name,
          plainJson({
            resolved: said.arms[i]!.resolved,
            estimate: said.arms[i]!.estimate,
            valid: said.arms[i]!.valid,
            planned: said.arms[i]!.planned,
            reward: said.arms[i]!.reward,
          }),
        ]);
      const store = openStore(join(dir, 'swebatch.db'), { readonly: true });
      expect(plainJson(armScores(scoreRows(store, id)))).toEqual(listed);
      store.close();
    }
    await open('', '[role=grid]');
    const estimate = report('epochs').arms[0]!.estimate!;
    await page
      .getByText(`${(100 * estimate.mean).toFixed(1)} % [`)
      .first()
      .waitFor();
  });

  test.each(PAIRS)(
    '%s against %s: the document is the comparison, and the page says its numbers',
    async (a, b) => {
      const said = compare({ sides: [a, b], results: dir });
      const { runs } = await get<RunList>('runs');
      const path = [a, b].map((side) => {
        const [run = '', arm] = side.split('/');
        const found = runs.find((one) => one.name === run)!;
        return `${found.id}.${arm ? found.arms.findIndex(({ name }) => name === arm) : 0}`;
      });
      const document = await get<ComparedDocument>(`compare/${path.join('/')}`);
      expect(document.compared).toEqual(plainJson(said));
      expect(document.words).toEqual(plainJson(compareDocument(said)));
      await open(`compare?s=${a}|${b}`, '.blocks');
      const sides = [a, b].map((side) => report(side.split('/')[0]!));
      expect(await strange('.blocks', [said, sides, document.words])).toEqual([]);
      expect(await strange('[aria-label="Summary of the runs"]', [said, sides])).toEqual([]);
    },
  );

  test('what is filtered is scored by the rule of the report, arm by arm', async () => {
    const [first, second] = report('both').arms;
    await open('run/both/instances', '[role=grid]');
    const share = (x: number) => `${(100 * x).toFixed(1)} %`;
    const status = page.getByText(/of 56; resolved/);
    await status.waitFor();
    expect((await status.allInnerTexts()).join()).toContain(`first ${share(first!.estimate!.mean)} [`);
    expect((await status.allInnerTexts()).join()).toContain(`second ${share(second!.estimate!.mean)} [`);
    for (const name of ['Arm', 'Epoch'])
      await page.getByRole('columnheader', { name, exact: true }).waitFor();
  });
});
