// An agent that is told its limits can write what it has before they end; one that is not sees what it saw before.
import { expect, test } from 'vitest';
import { renderCommand } from '../../src/agent/installed/commandAgent.ts';
import { deadlineOf, limitsAhead, usedOfLimits } from '../../src/agent/limitsTold.ts';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { bash, config, fakeEnvironment, fakeModel, result, submitted } from './fakes.ts';

const limits = { step_limit: 50, cost_limit: 3, wall_time_limit_seconds: 600 };
const none = { step_limit: 0, cost_limit: 0, wall_time_limit_seconds: 0 };

test('what is used stands beside what there is; what is not limited is not told', () => {
  expect(usedOfLimits(limits, { steps: 12, dollars: 0.125, seconds: 340.7 })).toBe(
    '\n[used: step 12 of 50, $0.13 of $3.00, 340 of 600 seconds]',
  );
  expect(usedOfLimits({ ...none, step_limit: 5 }, { steps: 1, dollars: 9, seconds: 9 })).toBe(
    '\n[used: step 1 of 5]',
  );
  expect(usedOfLimits(none, { steps: 1, dollars: 9, seconds: 9 })).toBe('');
});

test('a program hears its limits with its task', () => {
  const deadline = deadlineOf(limits, Date.UTC(2026, 0, 1));
  expect(deadline).toBe('2026-01-01T00:10:00.000Z');
  expect(limitsAhead(limits, deadline)).toBe(
    '\n\nYou have at most 50 calls of your model, $3.00 and 600 seconds, until 2026-01-01T00:10:00.000Z. What is in the work tree then is your answer.',
  );
  expect(limitsAhead(none, '')).toBe('');
  const facts = { task: 't', promptFile: '/p', model: 'm', deadline };
  expect(renderCommand('x --until {{deadline}}', facts)).toBe(`x --until ${deadline}`);
});

test.each([
  [{ tell_limits: true }, '[used: step 1 of 5, $0.00 of $3.00]'],
  [{}, ''],
])('the built-in agent with %j sees %j below its observation', async (more, told) => {
  const model = fakeModel([bash('ls'), bash('submit')]);
  const environment = fakeEnvironment([result('a\n'), submitted('diff\n')]);
  const parts = { instanceId: 'i', model, environment, config: config({ step_limit: 5, ...more }) };
  const { messages } = await createAgent(parts).run('fix it');
  const observation = messages[3]!.content as string;
  expect(observation.includes('[used:')).toBe(told !== '');
  expect(observation.endsWith(told)).toBe(true);
});
