/// <reference lib="dom" />
// Of a run of 500 instances x 200 steps the page draws only what is in sight. How fast it is: tests/long/viewer.test.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startViewer, type Viewer } from '../../src/viewer/server.ts';
import { browserAvailable, buildPage, launch, watchErrors } from './browser.ts';
import { addRun, openFixture } from './fixture.ts';

const INSTANCES = 500;
const STEPS = 200;

describe.skipIf(!browserAvailable())('a run of 500 x 200', () => {
  let browser: Browser;
  let built: Awaited<ReturnType<typeof buildPage>>;
  let dir: string;
  let viewer: Viewer;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-large-'));
    const store = openFixture(dir);
    addRun(store, { name: 'big', instances: INSTANCES, steps: STEPS });
    store.close();
    built = await buildPage();
    browser = await launch();
    viewer = await startViewer({ results: dir, port: 0, pageDir: built.dir });
  });
  afterAll(async () => {
    await browser?.close();
    await viewer?.close();
    await built?.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  test('the table knows all rows and draws few, a trajectory of 400 messages likewise, from the first to the last', async () => {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    const errors = watchErrors(page);
    await page.goto(`${viewer.url}#/run/big/instances`);
    const grid = page.getByRole('grid');
    const rowCount = () => grid.getAttribute('aria-rowcount');
    await page.getByRole('link', { name: 'django__django-10000' }).waitFor();
    expect(await rowCount()).toBe(String(INSTANCES + 1));
    expect(await page.getByRole('row').count()).toBeLessThan(80);
    await page.getByLabel('Filter').fill('django steps>150');
    await expect.poll(rowCount).toBe('101');
    await grid.focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    await page.getByText('THOUGHT: step 1,').waitFor();
    await page.getByRole('feed').focus();
    await page.keyboard.press('End');
    await page.getByRole('article').last().waitFor();
    await expect.poll(() => page.url()).toMatch(/step=\d{3}$/);
    expect(await page.getByRole('article').count()).toBeLessThan(40);
    expect(errors).toEqual([]);
  });
});
