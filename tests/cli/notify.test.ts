// Commands that a user configured hear of the end, the budget and the breaker; what goes wrong in them is said and harms nothing.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { runConfigSchema } from '../../src/config/configSchema.ts';
import { createNotifier } from '../../src/run/control/notify.ts';
import type { RunEvent } from '../../src/run/events.ts';

const dir = mkdtempSync(join(tmpdir(), 'swebatch-notify-'));
afterAll(() => rmSync(dir, { recursive: true }));
let said: string[];
beforeEach(() => {
  said = [];
});

const notifierFor = (commands: object) =>
  createNotifier(runConfigSchema.parse(commands), (text) => said.push(text));
const heard = (name: string) =>
  readFileSync(join(dir, name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RunEvent);

const ended: RunEvent = { type: 'run_ended', run: 'r $(x)', status: 'complete', counts: {}, spentNano: 5 };
const budget = (percent: number): RunEvent => ({
  type: 'budget',
  percent,
  spentNano: percent,
  budgetNano: 100,
});
const breaker: RunEvent = { type: 'breaker', reason: '5 in a row' };

test('each command gets its own events, as JSON on stdin', async () => {
  const { listener, settle } = notifierFor({
    on_finish: `cat >> ${join(dir, 'finish')}`,
    on_budget: `cat >> ${join(dir, 'budget')}`,
    on_breaker: `cat >> ${join(dir, 'breaker')}`,
  });
  for (const event of [breaker, budget(50), { type: 'note', text: 'x' } as RunEvent, ended]) listener(event);
  await settle();
  expect(heard('finish')).toEqual([ended]);
  expect(heard('budget')).toEqual([budget(50)]);
  expect(heard('breaker')).toEqual([breaker]);
  expect(said).toEqual([]);
});

test('a command that fails, or does not read, breaks nothing; a failure is said', async () => {
  const { listener, settle } = notifierFor({ on_finish: 'exit 3', on_budget: 'true' });
  listener(ended);
  listener(budget(80));
  await settle();
  expect(said).toEqual(['warning: run.on_finish failed: it ended with 3']);
});

test('a command that never ends holds the program no longer than the limit', async () => {
  const { listener, settle } = notifierFor({ on_finish: `read line; touch ${join(dir, 'late')}; exec cat` });
  listener(ended);
  await settle();
  expect(existsSync(join(dir, 'late'))).toBe(true);
  const hanging = notifierFor({ on_finish: 'exec sleep 1' });
  hanging.listener(ended);
  await hanging.settle(1);
  expect(said).toEqual([]);
});

test('nothing configured, nothing run', async () => {
  const { listener, settle } = notifierFor({});
  for (const event of [ended, budget(100), breaker]) listener(event);
  await settle(0);
  expect(said).toEqual([]);
});
