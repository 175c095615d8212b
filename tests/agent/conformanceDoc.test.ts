// docs/traceability/conformance.md says the truth: every line of mini-swe-agent's test list is there, with tests that exist or the reason why not.
// And the lines that no other file covers.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { bash, config, fakeEnvironment, fakeModel, reply, result, submitted } from './fakes.ts';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'traceability', 'conformance.md'), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => /^\| (\d+|new) \|/.test(line))
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')));

describe('the page', () => {
  test('has each of the 61 lines, in order, and the ten that are not tested there', () => {
    const numbers = rows.map(([number]) => number);
    expect([...new Set(numbers)].filter((n) => n !== 'new')).toEqual(
      Array.from({ length: 61 }, (_, i) => String(i + 1)),
    );
    expect(numbers.filter((n) => n === 'new').length).toBeGreaterThanOrEqual(10);
  });
  test.each(rows.map((row) => [`${row[0]}: ${row[1]}`, row[2] ?? ''] as const))('%s', (_, where) => {
    if (where.startsWith('not ours: ')) {
      expect(where.length).toBeGreaterThan(30);
      return;
    }
    const named = [...where.matchAll(/`(tests\/[^`]+)` › "([^"]+)"/g)];
    expect(named.length, where).toBeGreaterThan(0);
    const plain = (text: string): string => text.replaceAll('\\', '').replaceAll(/['’"]/g, "'");
    for (const [, path, title] of named) {
      expect(existsSync(join(root, path as string)), path).toBe(true);
      expect(plain(readFileSync(join(root, path as string), 'utf8'))).toContain(plain(title as string));
    }
  });
});

const frozen = <T extends object>(value: T): T => {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) frozen(inner);
  return Object.freeze(value);
};

test('48: a configuration that several agents share is not changed by them', async () => {
  const shared = frozen(config({ step_limit: 9, expose_fields: ['repo'] }));
  const work = () =>
    createAgent({
      instanceId: 'i',
      model: fakeModel([reply('no block'), bash('ls'), bash('submit')]),
      environment: fakeEnvironment([result('a\n'), submitted('patch\n')]),
      config: shared,
    }).run('task', { repo: 'a/a' });
  const ended = await Promise.all([work(), work()]);
  expect(ended.map((e) => e.exitStatus)).toEqual(['Submitted', 'Submitted']);
});

test('27: what is kept of a malformed reply goes to JSON, with its response and its cost', async () => {
  const { messages } = await createAgent({
    instanceId: 'i',
    model: fakeModel([reply('no block', { costNano: 5 }), bash('submit')]),
    environment: fakeEnvironment([submitted('p')]),
    config: config(),
  }).run('task');
  const written = JSON.parse(JSON.stringify(messages)) as { role: string; content: string; extra?: object }[];
  expect(written.map((m) => m.role).slice(0, 4)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(written[2]).toMatchObject({ content: 'no block' });
  expect(JSON.stringify(written[2]!.extra)).toMatch(/"cost[^"]*":/);
});
