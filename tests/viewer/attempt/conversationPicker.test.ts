/// <reference lib="dom" />
// The conversations of a program in a real Chromium: its own is shown first, sub-agents and titles can be chosen, each with its cost.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../../src/store/open.ts';
import { startViewer, type Viewer } from '../../../src/viewer/server.ts';
import { browserAvailable, buildPage, launch, watchErrors } from '../browser.ts';
import { addRun, openFixture } from '../fixture.ts';
import { put } from '../fixtureRows.ts';

interface Conversation {
  readonly thread: string;
  readonly label: string | null;
  readonly first: number;
  readonly reply: number | null;
  readonly costNano: number;
}

/** The calls of a program, over the messages that an attempt of the fixture has. */
function addConversations(store: Store, attempt: number, conversations: readonly Conversation[]): void {
  for (const [call, { thread, label, first, reply }] of conversations.entries())
    put(store, 'program_calls', {
      ...{ attempt_id: attempt, call, step: call + 1, label, thread, dialect: 'chat' },
      ...{ operation: 'generate', model: 'm', first_message: first, reply_message: reply, answer: 'whole' },
      ...{ status: 200, headers: '{}', request: Buffer.alloc(0), response: Buffer.alloc(0), failure: null },
    });
  const rows = store
    .prepare('SELECT id FROM model_calls WHERE attempt_id = ? ORDER BY id')
    .pluck()
    .all(attempt);
  for (const [call, { costNano }] of conversations.entries())
    store
      .prepare('UPDATE model_calls SET call = ?, cost_nano = ? WHERE id = ?')
      .run(call, costNano, rows[call]);
}

describe.skipIf(!browserAvailable())('conversations of a program in Chromium', () => {
  let browser: Browser;
  let built: Awaited<ReturnType<typeof buildPage>>;
  let dir: string;
  let store: Store;
  let viewer: Viewer;
  let page: Page;
  let errors: string[];

  beforeAll(async () => {
    built = await buildPage();
    browser = await launch();
    dir = mkdtempSync(join(tmpdir(), 'swebatch-threads-'));
    store = openFixture(dir);
    addRun(store, { name: 'program', instances: 2, steps: 6 });
    // System and task are messages 0 and 1; each turn of the fixture is two more.
    addConversations(store, 1, [
      { thread: 'main', label: null, first: 0, reply: 2, costNano: 21_000_000 },
      { thread: 'title', label: 'title', first: 3, reply: 4, costNano: 400_000 },
      { thread: 'task-1', label: 'subagent:task-1', first: 5, reply: 8, costNano: 7_000_000 },
      { thread: 'main', label: null, first: 9, reply: 10, costNano: 30_000_000 },
    ]);
    addConversations(store, 2, [
      { thread: 'main', label: null, first: 0, reply: 2, costNano: 1_000_000 },
      { thread: 'title', label: 'title', first: 3, reply: 4, costNano: 1_000_000 },
    ]);
    viewer = await startViewer({ results: dir, port: 0, pageDir: built.dir, pollMs: 50 });
    page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    errors = watchErrors(page);
  });
  afterAll(async () => {
    await browser?.close();
    await viewer?.close();
    store?.close();
    await built?.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  const picker = () => page.getByLabel('conversation');
  const options = async () =>
    (await picker().locator('option').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());

  const conversation = () => page.getByRole('feed', { name: 'Trajectory' });
  const shown = async (text: string) => {
    await conversation().getByText(text).first().waitFor();
    return (await conversation().allInnerTexts()).join('\n');
  };

  test('its own is shown first; others are chosen, with what each cost; what is not chosen is not shown', async () => {
    await page.goto(`${viewer.url}#/attempt/1`);
    await picker().waitFor();
    expect(await options()).toEqual([
      'main: 9 messages, 2 calls, $0.05',
      'title: 2 messages, 1 call, $0.00040',
      'task-1 (sub-agent): 4 messages, 1 call, $0.0070',
    ]);
    expect(await picker().inputValue()).toBe('main');
    expect(await shown('THOUGHT: step 1,')).not.toContain('THOUGHT: step 2,');
    await picker().selectOption('title');
    expect(await shown('THOUGHT: step 2,')).not.toContain('THOUGHT: step 1,');
    await picker().selectOption('task-1');
    expect(await shown('THOUGHT: step 4,')).not.toContain('THOUGHT: step 2,');
    expect(await page.getByText(/^4 messages, \d+ failed/).isVisible()).toBe(true);
    expect(errors).toEqual([]);
  });

  test('an address with a step opens the conversation that has it', async () => {
    await page.goto('about:blank');
    await page.goto(`${viewer.url}#/attempt/1?step=2`);
    await picker().waitFor();
    expect(await picker().inputValue()).toBe('title');
  });

  test('the next attempt, which has no conversation of that name, shows its own', async () => {
    await page.goto('about:blank');
    await page.goto(`${viewer.url}#/attempt/1`);
    await picker().selectOption('task-1');
    await page.getByRole('link', { name: /^next/ }).click();
    await page.getByRole('heading', { level: 1 }).getByText('10001').waitFor();
    expect(await picker().inputValue()).toBe('main');
    expect(await shown('THOUGHT: step 1,')).toContain('THOUGHT: step 1,');
    expect(errors).toEqual([]);
  });

  test('has no fault for people who use a keyboard, a screen reader or a phone', async () => {
    await page.goto('about:blank');
    await page.goto(`${viewer.url}#/attempt/1`);
    await picker().waitFor();
    await page.evaluate(axe.source);
    const faults = await page.evaluate(async () => {
      const { axe: engine } = window as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      };
      return (await engine.run()).violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
      );
    });
    expect(faults).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    // As wide as the page may be, its margins left out.
    const { x, width } = (await picker().boundingBox())!;
    expect(x + width).toBeLessThanOrEqual(390 - x);
    await picker().focus();
    await page.keyboard.press('ArrowDown');
    expect(await picker().inputValue()).toBe('title');
  });
});
