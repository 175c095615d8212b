/// <reference lib="dom" />
// The page in a real Chromium: what a person sees and does, on a live server, in a static bundle and in a single file.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import axe from 'axe-core';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/open.ts';
import { exportHtml, writeBundle } from '../../src/viewer/bundle.ts';
import { startViewer, type Viewer } from '../../src/viewer/server.ts';
import { browserAvailable, buildPage, launch, watchErrors } from './browser.ts';
import { addRun, openFixture } from './fixture.ts';
import { iso, put } from './fixtureRows.ts';
import { addMessage } from './fixtureSteps.ts';
import { addHostileRun } from './hostileRun.ts';

describe.skipIf(!browserAvailable())('the page in Chromium', () => {
  let browser: Browser;
  /** Pages of one person: they share a process of the browser, and each begins with nothing stored. */
  let usual: BrowserContext;
  let firstPage: Page;
  let built: Awaited<ReturnType<typeof buildPage>>;
  let dir: string;
  let store: Store;
  let viewer: Viewer;
  let page: Page;
  let errors: string[];
  let evil: { run: number; attempt: number };

  beforeAll(async () => {
    built = await buildPage();
    browser = await launch();
    dir = mkdtempSync(join(tmpdir(), 'swebatch-view-'));
    store = openFixture(dir);
    addRun(store, { name: 'nightly-1', instances: 60, steps: 12, seed: 1 });
    addRun(store, { name: 'nightly-2', instances: 60, steps: 12, seed: 2, day: 1 });
    const bare = addRun(store, { name: 'ungraded', instances: 5, steps: 2, day: 4, imported: true });
    const own = '(SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?)';
    store.prepare(`DELETE FROM evaluations WHERE attempt_id IN ${own}`).run(bare);
    evil = addHostileRun(store);
    viewer = await startViewer({ results: dir, port: 0, pageDir: built.dir, pollMs: 50 });
    usual = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    firstPage = await usual.newPage();
    await firstPage.goto(`${viewer.url}no-such-page`);
  });
  afterAll(async () => {
    await browser?.close();
    await viewer?.close();
    store?.close();
    await built?.remove();
    rmSync(dir, { recursive: true, force: true });
  });
  afterEach(async () => {
    if (page?.context() !== usual) return page?.context().close();
    await page.close();
    await firstPage.evaluate(() => localStorage.clear());
  });

  const open = async (hash: string, options?: Parameters<Browser['newContext']>[0]): Promise<Page> => {
    const context = options
      ? await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
      : usual;
    page = await context.newPage();
    page.setDefaultTimeout(30_000);
    errors = watchErrors(page);
    await page.goto(`${viewer.url}#/${hash}`);
    return page;
  };
  /** Everything that was asked for has been answered and drawn. */
  const settled = () =>
    page.waitForFunction(
      () =>
        !document.querySelector('#app')?.textContent?.includes('loading …') &&
        document.querySelector('main h1, main p') !== null,
    );
  const shown = async (locator: Locator) => (await locator.allInnerTexts()).join('\n');
  /** What axe finds wrong, of which kind and where. */
  const violations = async (): Promise<string[]> => {
    if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
    return page.evaluate(async () => {
      const { axe: engine } = window as unknown as {
        axe: {
          run(only: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
        };
      };
      return (await engine.run({ resultTypes: ['violations'] })).violations.map(
        (violation) =>
          `${violation.id}: ${violation.nodes
            .map((node) => node.html.slice(0, 160))
            .slice(0, 3)
            .join(' | ')}`,
      );
    });
  };
  const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  const rowCount = async () => Number(await page.getByRole('grid').first().getAttribute('aria-rowcount')) - 1;

  test('lists the runs and leads from a run to its instances to an attempt', async () => {
    await open('');
    await page.getByRole('link', { name: 'nightly-1' }).click();
    await page.getByText(/Over all 60 planned: at least/).waitFor();
    await page.getByRole('link', { name: 'All instances' }).click();
    await page.getByRole('link', { name: 'django__django-10000' }).click();
    await page.getByText('THOUGHT: step 1,').waitFor();
    expect(page.url()).toMatch(/#\/attempt\/\d+$/);
    expect(errors).toEqual([]);
  });

  test('filters, sorts and keeps both in the address', async () => {
    await open('run/nightly-1/instances');
    await page.getByRole('grid').waitFor();
    await expect.poll(rowCount).toBe(60);
    await page.getByLabel('Filter').fill('django class:agent');
    await expect.poll(rowCount).toBeLessThan(12);
    await expect.poll(() => page.url()).toContain('f=django');
    await page.getByRole('button', { name: 'Cost' }).click();
    await expect
      .poll(() => page.getByRole('columnheader', { name: 'Cost' }).getAttribute('aria-sort'))
      .toBe('descending');
    const shared = page.url();
    const before = await shown(page.getByRole('row').nth(1));
    await page.goto('about:blank');
    await page.goto(shared);
    await expect.poll(() => shown(page.getByRole('row').nth(1))).toBe(before);
    await page.getByLabel('Filter').fill('nosuchfield:1');
    await page.getByText('no field "nosuchfield"').waitFor();
    expect(errors).toEqual([]);
  });

  test('columns are chosen and CSV takes what is shown', async () => {
    await open('run/nightly-1/instances?f=class:limit&cols=instance,exit,status,steps');
    await page.getByText('Columns', { exact: true }).click();
    await page.getByLabel('Exit status').waitFor();
    await page.getByLabel('Epoch').check();
    await expect.poll(() => page.url()).toContain('epoch');
    await page.getByText('Columns', { exact: true }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ]);
    const csv = readFileSync((await download.path())!, 'utf8');
    expect(csv.split('\r\n')[0]).toBe('Instance,Epoch,Steps,Exit status');
    expect(csv.trim().split('\r\n')).toHaveLength((await rowCount()) + 1);
    expect(csv).toContain('LimitsExceeded');
  });

  test('the keyboard alone reaches an attempt, its failed command and its tests', async () => {
    await open('run/nightly-1/instances');
    await page.getByRole('grid').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('django');
    await page.keyboard.press('Escape');
    await page.getByRole('grid').focus();
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('k');
    await expect
      .poll(() => page.locator('[role=row][aria-selected=true]').getAttribute('aria-rowindex'))
      .toBe('3');
    await page.keyboard.press('Enter');
    await page.getByRole('feed').focus();
    await page.keyboard.press('n');
    await expect.poll(() => page.url()).toContain('step=3');
    await page.getByRole('tab', { name: 'Trajectory' }).focus();
    await page.keyboard.press('ArrowRight');
    await page.getByText('Gold patch', { exact: true }).waitFor();
    expect(errors).toEqual([]);
  });

  test('chips narrow without a syntax, stay in the address, and lead through the neighbours in the same filter', async () => {
    await open('run/nightly-1/instances');
    await expect.poll(rowCount).toBe(60);
    await page.getByRole('button', { name: /^unresolved/ }).click();
    await page.locator('summary', { hasText: 'Repository' }).click();
    await page.getByLabel(/^django/).check();
    await expect.poll(rowCount).toBeLessThan(10);
    const left = await rowCount();
    expect(page.url()).toContain('verdict=unresolved');
    await page.keyboard.press('Escape');
    await page.locator('#main').focus();
    await page.keyboard.press('Enter');
    await page.getByText(`1 of ${left}`, { exact: true }).waitFor();
    await page.keyboard.press(']');
    await page.getByText(`2 of ${left}`, { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(rowCount).toBe(left);
    await page.getByLabel('Filter').fill('nothing has these words');
    await page.getByRole('button', { name: 'Show all again' }).click();
    await expect.poll(rowCount).toBe(60);
    expect(errors).toEqual([]);
  });

  test('keys work from the first moment, and Esc leads up to the runs', async () => {
    await open('run/nightly-1/instances');
    await expect.poll(rowCount).toBe(60);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByText('THOUGHT: step 1,').waitFor();
    await page.keyboard.press('n');
    await expect.poll(() => page.url()).toContain('step=3');
    for (const up of [/instances$/, /nightly-1$/, /runs$/]) {
      await page.keyboard.press('Escape');
      await expect.poll(() => page.url()).toMatch(up);
      await page.locator('main h1').waitFor();
    }
    expect(errors).toEqual([]);
  });

  test('keys that come before the page that they are for are not lost', async () => {
    await open('run/nightly-1/instances');
    await expect.poll(rowCount).toBe(60);
    for (const key of ['j', 'Enter']) await page.keyboard.press(key);
    await page.getByText('THOUGHT: step 1,').waitFor();
    await page.evaluate(() => {
      for (let i = 0; i < 3; i++)
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    });
    await expect.poll(() => page.url()).toMatch(/runs$/);
    expect(errors).toEqual([]);
  });

  test('a run is a report: its rate, a cell for each trial that leads to it, what is missing, shares by repository', async () => {
    await open('run/nightly-1');
    const map = page.getByRole('listbox', { name: 'Trials' });
    await expect.poll(() => map.getByRole('option').count()).toBe(60);
    const [, x, n] = /(\d+) of (\d+) graded/.exec(await shown(page.locator('.hero')))!.map(Number);
    expect(await map.locator('.resolved').count()).toBe(x);
    expect(await map.locator('.resolved, .unresolved').count()).toBe(n);
    expect(await shown(page.locator('.missing'))).toMatch(/^10\s*infra/);
    expect(await page.locator('.forest').first().getByRole('row').count()).toBe(6);
    await map.focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    const second = await shown(page.locator('.mapdetail strong'));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: second }).waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${viewer.url}#/run/nightly-1?by=difficulty&colour=class`);
    await map.locator('.infra').first().hover();
    await page.locator('.mapdetail', { hasText: 'model unavailable' }).waitFor();
    await page.getByLabel('grouped by').selectOption('repository');
    await page.getByRole('link', { name: 'django/django' }).click();
    await expect.poll(rowCount).toBe(12);
    expect(errors).toEqual([]);
  });

  test('cells of several arms are grouped by arm and say theirs; the keys are in sight and lead to their list', async () => {
    addRun(store, { name: 'two-arms', instances: 3, steps: 2, day: 4, arms: ['short', 'long'] });
    await open('run/two-arms');
    const map = page.getByRole('listbox', { name: 'Trials' });
    await expect.poll(() => map.getByRole('option').count()).toBe(6);
    expect(await map.getByRole('group').evaluateAll((all) => all.map((one) => one.ariaLabel))).toEqual([
      'long',
      'short',
    ]);
    const labels = await map.getByRole('option').evaluateAll((all) => all.map((one) => one.ariaLabel));
    expect(labels.filter((label) => label?.includes(', short, '))).toHaveLength(3);
    await map.getByRole('option').first().hover();
    expect(await shown(page.locator('.mapdetail strong'))).toMatch(/, long$/);
    await page.getByTitle('all keys').click();
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    expect(errors).toEqual([]);
  });

  test('an imported run shows no times that nobody took', async () => {
    addRun(store, { name: 'taken-over', instances: 6, steps: 2, day: 3, imported: true });
    await open('run/taken-over');
    await page.getByRole('listbox', { name: 'Trials' }).waitFor();
    const text = await shown(page.locator('main'));
    expect(text).toContain('imported');
    for (const absent of [
      'Spend and progress',
      'Where the time went',
      'No phase',
      'Paused',
      'Waiting for an image',
      '20:',
    ])
      expect(text).not.toContain(absent);
    expect(await page.locator('.plot').count()).toBe(0);
  });

  test('before the first verdict nothing is drawn of shares, and what nobody timed has no tab', async () => {
    await open('run/ungraded');
    await page.getByRole('heading', { name: 'By repository' }).waitFor();
    expect(await shown(page.locator('main'))).not.toMatch(/95 % interval|imported · imported/);
    expect(await page.locator('.interval').count()).toBe(0);
    await page.getByRole('listbox', { name: 'Trials' }).press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('tab', { name: 'Task' }).waitFor();
    expect(await page.getByRole('tab', { name: 'Time' }).count()).toBe(0);
    // Where all rows have one verdict its chips are left out; those of repositories stay in their menu.
    await page.goto(`${viewer.url}#/run/ungraded/instances`);
    await page.locator('summary', { hasText: 'Repository' }).waitFor();
    expect(await page.locator('.chips button').count()).toBe(0);
    await page.goto(`${viewer.url}#/compare?s=nowhere`);
    await page.getByText('None of the runs of this address is here.').waitFor();
    expect(await page.locator('main table').count()).toBe(0);
    expect(errors).toEqual([]);
  });

  test('columns stay for the next visit', async () => {
    await open('run/nightly-1/instances');
    await page.getByText('Columns', { exact: true }).click();
    await page.getByLabel('Exit status').check();
    await page.goto(`${viewer.url}#/run/nightly-2/instances`);
    await page.getByRole('columnheader', { name: 'Exit status' }).waitFor();
  });

  test('before the first run the page says how to start one, and shows it when it comes', async () => {
    const root = mkdtempSync(join(tmpdir(), 'swebatch-first-'));
    const other = await startViewer({ results: root, port: 0, pageDir: built.dir, pollMs: 50 });
    page = await (await browser.newContext({ bypassCSP: true })).newPage();
    await page.goto(other.url);
    await page.getByText('npx swebatch run -c demo').waitFor();
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await sideways()).toBeLessThanOrEqual(0);
    for (const look of [
      { colorScheme: 'light' },
      { colorScheme: 'dark' },
      { colorScheme: 'light', media: 'print' },
    ] as const) {
      await page.emulateMedia(look);
      expect(await violations(), JSON.stringify(look)).toEqual([]);
    }
    await page.emulateMedia({ media: 'screen' });
    const first = openFixture(root);
    addRun(first, { name: 'the-first', instances: 3, steps: 2 });
    await page.getByRole('link', { name: 'the-first' }).waitFor();
    await other.close();
    first.close();
    rmSync(root, { recursive: true, force: true });
  });

  test('a deep link opens a step, a failed test leads to its line', async () => {
    const { id } = store
      .prepare("SELECT attempt_id AS id FROM evaluations WHERE outcome = 'unresolved' LIMIT 1")
      .get() as { id: number };
    await open(`attempt/${id}?step=9`);
    await page.getByText('THOUGHT: step 9,').waitFor();
    // The long output of step 4 arrives after the jump; the step asked for stays at the top all the same.
    await settled();
    const topOf = async (place: Locator) => (await place.boundingBox())!.y;
    const article = page.getByRole('article', { name: 'Agent, step 9' });
    await expect
      .poll(async () => Math.abs((await topOf(article)) - (await topOf(page.getByRole('feed')))))
      .toBeLessThan(60);
    await page.getByRole('tab', { name: 'Patch and tests' }).click();
    await page.getByText('as the maintainers did').waitFor();
    await page.getByRole('button', { name: /test_fix/ }).click();
    const marked = page.locator('.line.marked');
    await marked.waitFor();
    expect(await shown(marked)).toMatch(/^33\s+FAILED tests\/test_mod.py::test_fix/);
    expect(await shown(marked.locator('.ansi-red'))).toBe('FAILED');
    expect(errors).toEqual([]);
  });

  test('a trajectory has an outline of its steps, a search over all of it, and marks where it found something', async () => {
    await open('attempt/1');
    const steps = page.getByRole('navigation', { name: 'Steps' });
    await steps
      .getByRole('button', { name: /pytest/ })
      .first()
      .click();
    await expect.poll(() => page.url()).toContain('step=2');
    expect(await shown(steps.locator('.step.failed').first())).toMatch(/3\s*git diff --stat\s*read\s*exit 1/);
    await page.keyboard.press('/');
    await page.keyboard.type('_coord_matrix');
    await page.getByText(/\d+ found in 1[0-9] messages/).waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.mark.hit').count()).toBeGreaterThan(3);
    await expect.poll(() => page.evaluate(() => CSS.highlights.get('found')?.size ?? 0)).toBeGreaterThan(0);
    await steps.getByRole('button', { name: /^4/ }).click();
    // A long output of step 4 is folded with its size, and says that what is searched is inside.
    await page
      .getByRole('button', { name: /more lines of output \([\d.]+ kB, what you search is inside\)/ })
      .first()
      .waitFor();
    await page.getByLabel('Search this trajectory').fill('this is nowhere');
    await page.getByText('0 found in 0 messages').waitFor();
    await page.getByRole('link', { name: 'step 4', exact: true }).first().waitFor();
    expect(errors).toEqual([]);
  });

  test('the command of a step is copied by its button', async () => {
    await open('attempt/1?step=2', { permissions: ['clipboard-read', 'clipboard-write'] });
    const article = page.getByRole('article', { name: 'Agent, step 2' });
    await article.hover();
    await article.getByRole('button', { name: 'copy the command' }).click();
    await article.getByText('copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
      'python -m pytest tests/test_mod.py -q',
    );
  });

  test('all attempts of a trial are one click apart', async () => {
    const { id } = store
      .prepare(
        'SELECT final_attempt_id AS id FROM trials t JOIN attempts a ON a.id = t.final_attempt_id WHERE a.number = 2 LIMIT 1',
      )
      .get() as { id: number };
    await open(`attempt/${id}`);
    await page.getByText('2 (final)').waitFor();
    await page.getByRole('link', { name: '1', exact: true }).click();
    await page.getByText('HTTP 503 from the provider').waitFor();
  });

  test('compares two runs and puts a disagreement side by side', async () => {
    await open('compare?s=nightly-2|nightly-1');
    await page.getByText(/exact McNemar p/).waitFor();
    const text = await shown(page.locator('main'));
    const [, broken, fixed] = /(\d+) broken, (\d+) fixed/.exec(text)!.map(Number);
    const [, both, neither] = /Both resolved (\d+), neither (\d+)/.exec(text)!.map(Number);
    expect(text).toContain(`paired, n = ${both! + neither! + broken! + fixed!},`);
    expect(broken! + fixed!).toBeGreaterThan(0);
    await page.locator('a[title="their steps beside each other"]').first().click();
    await page.getByText('they part here').waitFor();
    expect(await page.locator('.alignedrow.same').count()).toBeGreaterThan(3);
    await page.locator('.alignedrow > button').nth(1).click();
    await page.getByText('THOUGHT: step 2,').first().waitFor();
    await page.getByRole('heading', { name: 'Tests' }).waitFor();
    await page.getByRole('cell', { name: 'failed' }).first().waitFor();
    await page.goto(`${viewer.url}#/side?a=1&b=2`);
    await expect.poll(() => page.getByRole('feed').count()).toBe(2);
    await page.getByRole('button', { name: 'both one step on' }).click();
    await expect.poll(() => page.url()).toContain('step=2');
    await page.goto(`${viewer.url}#/compare?s=nightly-2|nightly-1`);
    await page.getByRole('grid', { name: 'Matrix' }).getByRole('link').first().click();
    await page.getByRole('heading', { name: /History of/ }).waitFor();
    await expect.poll(rowCount).toBeGreaterThanOrEqual(2);
    expect(errors).toEqual([]);
  });

  test('follows a run that is being written', async () => {
    const run = addRun(store, {
      name: 'nightly-live',
      instances: 8,
      steps: 2,
      seed: 5,
      doneUntil: 3,
      day: 2,
    });
    const attempt = (
      store
        .prepare(
          "SELECT max(a.id) AS id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ? AND a.state = 'running'",
        )
        .get(run) as { id: number }
    ).id;
    await open('run/nightly-live');
    await page.getByText(/slots busy/).waitFor();
    const missing = page.locator('.missing');
    expect(await shown(missing)).not.toContain('swebatch');
    store
      .prepare("UPDATE runs SET status = 'complete', finished_at = ? WHERE id = ?")
      .run(iso(2, 9_000_000), run);
    await page.getByRole('heading', { name: 'nightly-live complete' }).waitFor();
    await missing.getByText('swebatch resume nightly-live').first().waitFor();
    await page.goto(`${viewer.url}#/attempt/${attempt}`);
    await page.getByRole('feed').waitFor();
    await page.getByRole('feed').focus();
    await page.keyboard.press('End');
    addMessage(store, attempt, 90, 'user', 'a message that came while somebody watched', iso(2, 1));
    await page.getByText('a message that came while somebody watched').waitFor();
    await page.goto(`${viewer.url}#/`);
    await page.getByRole('link', { name: 'nightly-live' }).waitFor();
    put(store, 'runs', {
      name: 'brand-new',
      status: 'running',
      created_at: iso(3, 0),
      config: '{}',
      config_hash: 'c',
      manifest: '{}',
      dataset_source: 'd',
      dataset_hash: 'd',
    });
    await page.getByRole('link', { name: 'brand-new' }).waitFor();
    expect(errors).toEqual([]);
  });

  test('a page and a program of different versions do not misread each other: the page says what to do', async () => {
    page = await (await browser.newContext()).newPage();
    await page.route('**/api/**', async (route) => {
      if (route.request().url().endsWith('/live')) return route.continue();
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), 'swebatch-documents': '0' } });
    });
    await page.goto(`${viewer.url}#/run/nightly-1`);
    await page.getByRole('alert').first().waitFor();
    const said = await shown(page.getByRole('alert').first());
    expect(said).toMatch(/different versions: reload it; .*npm run build/);
    expect(await page.getByText('It is not here').count()).toBe(0);
    expect(await page.locator('.map .cell').count()).toBe(0);
  });

  test('what the address needs comes in one answer, and each document is not asked for again', async () => {
    page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    errors = watchErrors(page);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`${viewer.url}#/run/nightly-1`);
    await page.locator('.map .cell').last().waitFor();
    expect(asked.filter((path) => path.startsWith('/api/') && path !== '/api/live')).toEqual(['/api/first']);
    expect(errors).toEqual([]);
  });

  test('says when the server is gone and keeps what it shows', async () => {
    const other = await startViewer({ results: dir, port: 0, pageDir: built.dir });
    const context = await browser.newContext();
    page = await context.newPage();
    await page.goto(other.url);
    await page.getByRole('link', { name: 'nightly-1' }).waitFor();
    await other.close();
    await page.getByText('connection lost').waitFor();
    expect(await page.getByRole('link', { name: 'nightly-1' }).count()).toBe(1);
  });

  const hostilePlaces = () => [
    '',
    `run/${encodeURIComponent((store.prepare('SELECT name FROM runs WHERE id = ?').get(evil.run) as { name: string }).name)}`,
    `run/${encodeURIComponent((store.prepare('SELECT name FROM runs WHERE id = ?').get(evil.run) as { name: string }).name)}/instances?cols=instance,arm,model,repo,difficulty,status,flags`,
    `attempt/${evil.attempt}`,
    `attempt/${evil.attempt}?tab=patch`,
    `attempt/${evil.attempt}?tab=time`,
    `attempt/${evil.attempt}?tab=task`,
    `attempt/${evil.attempt}?tab=raw`,
    `compare?a=${encodeURIComponent((store.prepare('SELECT name FROM runs WHERE id = ?').get(evil.run) as { name: string }).name)}`,
    `side?a=${evil.attempt}&b=1`,
    `compare/${encodeURIComponent((store.prepare('SELECT name FROM runs WHERE id = ?').get(evil.run) as { name: string }).name)}/__proto__/constructor`,
    `compare/${encodeURIComponent('<img src=x onerror=window.__pwned=1>')}/b/${encodeURIComponent('django__django-10000')}`,
    'history/constructor',
    'run/<img src=x onerror=window.__pwned=1>',
    'history/%3Cscript%3Ewindow.__pwned=1%3C/script%3E',
    'attempt/javascript:alert(1)',
  ];

  async function assertInert(): Promise<void> {
    await page.evaluate(() => {
      // Open everything that is folded, as a curious reader would.
      for (const details of document.querySelectorAll('details')) details.open = true;
    });
    await settled();
    const found = await page.evaluate(() => ({
      pwned: (window as unknown as { __pwned?: unknown }).__pwned ?? null,
      scripts: document.querySelectorAll(
        '#app script, #app img, #app iframe, #app object, #app embed, #app [onerror], #app [onload]',
      ).length,
      links: [...document.querySelectorAll('a')]
        .map((a) => a.getAttribute('href') ?? '')
        .filter((to) => !to.startsWith('#/')),
      bidi: /[\u202a-\u202e\u2066-\u2069\u0000\u001b]/.test(
        document.querySelector('#app')!.textContent ?? '',
      ),
      polluted: Object.keys(Object.prototype),
    }));
    expect(found).toEqual({ pwned: null, scripts: 0, links: [], bidi: false, polluted: [] });
  }

  test('hostile text is inert on every page', async () => {
    const alerts: string[] = [];
    await open('');
    page.on('dialog', (dialog) => {
      alerts.push(dialog.message());
      void dialog.dismiss();
    });
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    for (const place of hostilePlaces()) {
      await page.goto('about:blank');
      await page.goto(`${viewer.url}#/${place}`);
      await page.locator('main :is(h1, p, [role=grid])').first().waitFor();
      await assertInert();
    }
    expect(alerts).toEqual([]);
    expect(
      requests.filter(
        (url) => !url.startsWith(viewer.url) && !url.startsWith('data:') && url !== 'about:blank',
      ),
    ).toEqual([]);
    expect(errors.filter((error) => !error.includes('404'))).toEqual([]);
  });

  test('the hostile text is there to read', async () => {
    await open(`attempt/${evil.attempt}`);
    await page.getByRole('feed').waitFor();
    await page.getByText('</script><script>window.__pwned').first().waitFor();
    // Messages come in chunks: each is waited for.
    for (const text of ['<img src=x onerror=', '‹U+202E›', 'nul ␀ bell ␇'])
      await expect.poll(() => shown(page.getByRole('feed'))).toContain(text);
    await page.locator('.ansi-red', { hasText: 'red' }).first().waitFor();
  });

  test('has no accessibility violations in light, in dark, in print and on a phone', async () => {
    await open('', { bypassCSP: true });
    const desk = page.viewportSize()!;
    const wrong: string[] = [];
    const look = async (place: string, how: string) =>
      wrong.push(...(await violations()).map((line) => `${place} ${how} ${line}`));
    for (const place of [
      '',
      'run/nightly-1',
      'run/ungraded',
      'run/nightly-1/instances',
      'attempt/1',
      'attempt/1?tab=patch',
      'attempt/1?tab=time',
      'compare?s=nightly-2|nightly-1',
      'compare/nightly-1/nightly-2/sympy__sympy-10001',
      'side?a=1&b=2',
      'attempt/1?tab=task',
      'attempt/1?tab=raw',
      'nowhere',
      'history/django__django-10000',
    ]) {
      await page.goto('about:blank');
      await page.goto(`${viewer.url}#/${place}`);
      await page.locator('main h1').first().waitFor();
      await settled();
      await look(place, 'light');
      await page.emulateMedia({ colorScheme: 'dark' });
      await look(place, 'dark');
      await page.emulateMedia({ media: 'print', colorScheme: 'light' });
      await look(place, 'print');
      await page.emulateMedia({ media: 'screen' });
      await page.setViewportSize({ width: 390, height: 800 });
      await look(place, 'phone');
      await page.setViewportSize(desk);
    }
    expect(wrong).toEqual([]);
  });

  test('is readable on a phone: nothing but tables and code scrolls sideways', async () => {
    await open('', { viewport: { width: 390, height: 800 } });
    for (const place of [
      '',
      'run/nightly-1',
      'run/ungraded',
      'run/nightly-1/instances?verdict=unresolved',
      'attempt/1',
      'attempt/1?tab=patch',
      'attempt/1?tab=time',
      'attempt/1?tab=task',
      'attempt/1?tab=raw',
      'side?a=1&b=2',
      'compare?s=nightly-2|nightly-1',
      'compare/nightly-1/nightly-2/sympy__sympy-10001',
      'history/django__django-10000',
      'nowhere',
    ]) {
      await page.goto(`${viewer.url}#/${place}`);
      await page.locator('main h1').first().waitFor();
      await settled();
      expect(await sideways(), place).toBeLessThanOrEqual(0);
    }
  });

  test('what opens on a phone lies within it, and two trajectories lie below each other', async () => {
    await open('run/nightly-1/instances', { viewport: { width: 390, height: 800 } });
    await expect.poll(rowCount).toBe(60);
    const inside = async (place: Locator, what: string) => {
      const box = (await place.boundingBox())!;
      expect([box.x >= 0, box.x + box.width <= 390], what).toEqual([true, true]);
    };
    for (const name of ['Columns', 'Ended', 'Repository', 'Difficulty', 'Flags']) {
      const opener = page.locator('summary', { hasText: name });
      await opener.click();
      await inside(page.locator('details[open] fieldset'), name);
      await opener.click();
    }
    await page.keyboard.press('?');
    await inside(page.locator('.help'), 'keys');
    await page.goto(`${viewer.url}#/side?a=1&b=2`);
    await page.getByRole('feed').nth(1).waitFor();
    const [above, below] = [page.getByRole('feed').first(), page.locator('.half').nth(1)];
    const end = (await above.boundingBox())!;
    expect(end.y + end.height).toBeLessThanOrEqual((await below.boundingBox())!.y);
    expect(errors).toEqual([]);
  });

  test('a static bundle opens from any web server with the same pages', async () => {
    const out = join(dir, 'bundle');
    const { files } = writeBundle(dir, out, { pageDir: built.dir });
    expect(files).toBeGreaterThan(100);
    const server = createServer((request, response) => {
      const path = join(out, normalize(decodeURIComponent(request.url!.split('?')[0]!)));
      try {
        const body = readFileSync(path.endsWith('/') ? join(path, 'index.html') : path);
        const type = path.endsWith('.js')
          ? 'text/javascript'
          : path.endsWith('.css')
            ? 'text/css'
            : path.endsWith('.json')
              ? 'application/json'
              : 'text/html';
        response.writeHead(200, { 'content-type': type }).end(body);
      } catch {
        response.writeHead(404).end();
      }
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const context = await browser.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(30_000);
    errors = watchErrors(page);
    await page.goto(base);
    await page.getByText('as of ').waitFor();
    await page.getByRole('link', { name: 'nightly-1' }).click();
    // The legend of the map has a link of this name too.
    await page.locator('.ways').getByRole('link', { name: 'unresolved', exact: true }).click();
    await page.getByRole('grid').getByRole('link').first().click();
    await page.getByText('THOUGHT: step 1,').waitFor();
    await page.getByRole('tab', { name: 'Raw JSON' }).click();
    await page.getByText('"role": "assistant"').first().waitFor({ state: 'attached' });
    await page.getByRole('link', { name: 'history of this instance' }).click();
    await page.getByRole('heading', { name: /History of/ }).waitFor();
    for (const place of hostilePlaces()) {
      await page.goto('about:blank');
      await page.goto(`${base}#/${place}`);
      await page.locator('main :is(h1, p, [role=grid])').first().waitFor();
      await assertInert();
    }
    expect(errors.filter((error) => !error.includes('404'))).toEqual([]);
    await new Promise((done) => {
      server.close(done);
      server.closeAllConnections();
    });
  });

  test('a single file works from disk, with its trajectories inside and a summary without scripts', async () => {
    const evilName = (store.prepare('SELECT name FROM runs WHERE id = ?').get(evil.run) as { name: string })
      .name;
    for (const [run, file] of [
      ['nightly-1', 'run.html'],
      [evilName, 'evil.html'],
    ] as const)
      writeFileSync(join(dir, file), exportHtml(dir, run, { pageDir: built.dir }));
    const context = await browser.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(30_000);
    errors = watchErrors(page);
    const address = pathToFileURL(join(dir, 'run.html')).href;
    await page.goto(address);
    // The file opens its run.
    await page.getByRole('link', { name: 'All instances' }).click();
    await page.getByRole('link', { name: 'django__django-10000' }).click();
    await page.getByText('THOUGHT: step 1,').waitFor();
    await page.goto(pathToFileURL(join(dir, 'evil.html')).href);
    await page.getByRole('heading', { name: /evil/ }).waitFor();
    await page.goto(`${pathToFileURL(join(dir, 'evil.html')).href}#/attempt/${evil.attempt}`);
    await page.getByRole('feed').waitFor();
    await assertInert();
    expect(errors).toEqual([]);
    await context.close();
    const still = await browser.newContext({ javaScriptEnabled: false });
    page = await still.newPage();
    await page.goto(address);
    expect(await page.getByRole('row').count()).toBe(61);
    expect(await shown(page.locator('#app'))).toMatch(/main: \d+\/\d+ = [\d.]+ % \[/);
  });
});
