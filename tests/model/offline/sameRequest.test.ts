// What counts as the same request when a program is played again, and what does not.
import { expect, test } from 'vitest';
import { createComparison, requestDifference, withoutVariable } from '../../../src/model/offline/replayed.ts';
import { cpuMs } from '../../support/cpuTime.ts';

test.each([
  ['2026-01-02T03:04:05.678Z', '2027-11-12T13:14:15+02:00'],
  ['2026-01-02 03:04', '2026-01-03 23:59'],
  ['Sun Nov 22 23:27:27 UTC 2026', 'Mon Dec 1 01:02:03 UTC 2026'],
  ['Today is Sunday, November 22, 2026.', 'Today is Monday, December 1, 2027.'],
  ['22 Nov 2026', '1 December 2027'],
  ['-rw-r--r-- 1 root root 12 Nov 22 18:53 a.py', '-rw-r--r-- 1 root root 12 Dec 1 02:03 a.py'],
  ['5 passed in 0.12s', '5 passed in 13.5s'],
  ['Wall time: 0.0512 seconds', 'Wall time: 12 seconds'],
  ['{"duration_seconds":0.1}', '{"duration_seconds":12}'],
  ['msg_2f388442-0465-5a73-91aa-0123456789ab', 'msg_69913792-333d-5c16-bd8a-ba9876543210'],
  ['Chunk ID: 1a2b3c', 'Chunk ID: ffee00'],
  ['Chunk ID: 855068', 'Chunk ID: abcdef'],
  ['object at 0x7f12ab', 'object at 0x55'],
  ['/tmp/tmpz2fyf70_/a.py', '/tmp/pytest-of-root/a.py'],
  ['1795390047.1321707', '1795390048.2'],
  ['Process Group PGID: 15', 'Process Group PGID: 1234'],
  ['toolu_01AbCdEfGhIjKlMnOp', 'toolu_02ZyXwVuTsRqPoNmLk'],
])('%s is %s', (a, b) => {
  expect(withoutVariable(a)).toBe(withoutVariable(b));
});

test.each([
  ['3 passed', '2 passed'],
  ['exit code 1', 'exit code 0'],
  ['line 12', 'line 13'],
  ['src/a.py', 'src/b.py'],
  ['a_long_name_of_a_function', 'a_long_name_of_another_one'],
  ['deadline', 'deadlines'],
  ['/home/a/x', '/home/b/x'],
  ['version 1.2.3', 'version 1.2.4'],
])('%s is not %s', (a, b) => {
  expect(withoutVariable(a)).not.toBe(withoutVariable(b));
});

test('keys in another order are the same, names of a session are not said, and the first difference has its place', () => {
  const comparable = createComparison();
  const one = comparable({
    model: 'm',
    user: 'a',
    messages: [{ role: 'user', content: 'x' }, { role: 'tool' }],
  });
  const other = comparable({
    messages: [{ content: 'x', role: 'user' }, { role: 'tool' }],
    model: 'm',
    user: 'b',
  });
  expect(JSON.stringify(one)).toBe(JSON.stringify(other));
  expect(requestDifference(one, other)).toBeNull();
  const longer = comparable({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  expect(requestDifference(one, longer)).toEqual({
    at: 'messages[1]',
    recorded: '{"role":"tool"}',
    now: null,
  });
  expect(requestDifference('a', 1)).toEqual({ at: 'the request', recorded: 'a', now: '1' });
});

test('a conversation of a hundred turns, repeated in each of its requests, is compared at the cost of its new messages', () => {
  const comparable = createComparison();
  const messages = Array.from({ length: 200 }, (_, n) => ({
    role: 'user',
    content: `${n} ${'word 12 '.repeat(2500)}`,
  }));
  const took = cpuMs(() => {
    for (let turn = 1; turn <= 200; turn += 1) comparable({ messages: messages.slice(0, turn) });
  });
  expect(comparable({ messages })).toMatchObject({ messages: { length: 200 } });
  expect(took).toBeLessThan(15_000);
});

test('answers of tools that ran beside each other are the same in any order, and a mark for a cache says nothing', () => {
  const comparable = createComparison();
  const same = (a: unknown, b: unknown) => expect(comparable(a)).toEqual(comparable(b));
  const result = (id: string, more: object = {}) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: id,
    ...more,
  });
  same(
    {
      messages: [
        { role: 'user', content: [result('a'), result('b', { cache_control: { type: 'ephemeral' } })] },
      ],
    },
    {
      messages: [
        { role: 'user', content: [result('b'), result('a', { cache_control: { type: 'ephemeral' } })] },
      ],
    },
  );
  const tool = (id: string) => ({ role: 'tool', tool_call_id: id, content: id });
  const user = { role: 'user', content: 'x' };
  same([user, tool('a'), tool('b'), user, tool('c')], [user, tool('b'), tool('a'), user, tool('c')]);
  const item = (id: string) => ({ type: 'function_call_output', call_id: id, output: id });
  same([item('a'), item('b')], [item('b'), item('a')]);
  expect(comparable([tool('a'), user, tool('b')])).not.toEqual(comparable([tool('b'), user, tool('a')]));
  same('<usage>duration_ms: 5403</usage>', '<usage>duration_ms: 17</usage>');
});
