// The buttons of a run that works, pressed in a real browser: the run does what they say, and its record names the viewer.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startViewer, type Viewer } from '../../src/viewer/server.ts';
import { dockerAvailable } from '../support/docker.ts';
import { browserAvailable, buildPage, launch, watchErrors } from '../viewer/browser.ts';
import { type Bench, bash, containersOf, faultBench, GOOD } from './support.ts';

const available = browserAvailable() && (await dockerAvailable());
let bench: Bench | undefined;
let viewer: Viewer | undefined;
let closings: (() => Promise<void>)[] = [];
beforeEach(() => {
  closings = [];
});
afterEach(async () => {
  await viewer?.close();
  for (const close of closings) await close();
  await bench?.close();
});

describe.skipIf(!available)('the page of a run that works', () => {
  test('pauses it, gives it slots, goes on and cancels a trial', async () => {
    bench = await faultBench({
      // Far longer than all that is pressed meanwhile, however busy the machine is; nobody waits for its end.
      scripts: { 'a__a-1': [bash('sleep 900'), ...GOOD] },
      environment: { timeout: 1000 },
    });
    const { id, root } = bench;
    const built = await buildPage();
    const browser = await launch();
    closings = [() => browser.close(), built.remove];
    const running = bench.start(id, ['-w', '1']);
    await bench.server.waitForRequests(1);

    viewer = await startViewer({ results: root, port: 0, pageDir: built.dir, pollMs: 50 });
    const page = await browser.newPage();
    const errors = watchErrors(page);
    page.setDefaultTimeout(30_000);
    await page.goto(`${viewer.controlUrl}#/run/${id}`);
    const controls = page.getByLabel('Change this run');
    const press = (name: string) => controls.getByRole('button', { name }).click();
    await press('Pause');
    await controls.getByText('paused: nothing new starts').waitFor();
    await controls.getByLabel('Slots').fill('2');
    await press('Set slots');
    await controls.getByText('2 slots, before 1').waitFor();
    await controls.getByLabel('Slots').fill('many');
    await press('Set slots');
    await controls.getByText('workers takes a whole number').waitFor();
    await press('Go on');
    await controls.getByText('going on').waitFor();
    await running.said(/a__a-4 submitted/);
    await controls.getByLabel('Trial').selectOption({ label: 'a__a-1' });
    await press('Cancel trial');
    // It was the last that ran: the run ends, and with it the buttons.
    expect((await running.done).code).toBe(3);
    expect(containersOf(id)).toEqual([]);
    await controls.waitFor({ state: 'detached' });

    const asked = bench
      .query<{ data: string }>("SELECT data FROM events WHERE type = 'control' ORDER BY seq")
      .map(({ data }) => JSON.parse(data) as { command: string; done: boolean; by: string });
    expect(asked.map(({ command, done }) => [command, done])).toEqual([
      ['pause', true],
      ['workers', true],
      ['resume', true],
      ['cancel', true],
    ]);
    for (const { by } of asked) expect(by).toMatch(/\(viewer\)$/);
    // Chromium says of every refusal that it is one; "many" was refused.
    expect(errors).toEqual([expect.stringContaining('409')]);
  });
});
