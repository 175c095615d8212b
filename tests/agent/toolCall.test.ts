// Tool calls that cannot run (T-14, T-15): a precise answer to each, a history that every provider accepts.
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { readToolCall, sendableArguments, withUniqueIds } from '../../src/agent/loop/protocol.ts';
import type { Message, ModelReply } from '../../src/model/model.ts';
import { call, calls, config, fakeEnvironment, fakeModel, type Outcome, result, submitted } from './fakes.ts';
import { historyProblems } from './openCalls.ts';

const MB = 1024 * 1024;
const error = (args: unknown, name?: string) => {
  const read = readToolCall(call('c', args, name), MB);
  return 'error' in read ? read.error : read.command;
};

describe('what is wrong is said precisely [M-23, M-25]', () => {
  test.each<[string, unknown, string | RegExp]>([
    ['bad JSON', '{"command": "ls', /^Error parsing tool call arguments: /],
    ['empty arguments', '', /^Error parsing tool call arguments: /],
    ['no command', { cmd: 'ls' }, "Missing 'command' argument in bash tool call."],
    ['null', 'null', "The arguments must be a JSON object with the field 'command'."],
    ['an array', [], "The arguments must be a JSON object with the field 'command'."],
    ['a text', '"ls"', "The arguments must be a JSON object with the field 'command'."],
    ['a number as command', { command: 5 }, "The 'command' argument must be a string, not a number."],
    ['an array as command', { command: ['ls'] }, "The 'command' argument must be a string, not an array."],
    ['null as command', { command: null }, "The 'command' argument must be a string, not null."],
    ['NUL', { command: 'ls\0x' }, "The 'command' argument contains a NUL byte, which no shell accepts."],
    ['2.5 MB', { command: 'x'.repeat(2.5 * MB) }, 'command is 2.5 MB; limit 1 MB.'],
  ])('%s', (_name, args, wanted) => {
    expect(error(args)).toMatch(
      wanted instanceof RegExp ? wanted : new RegExp(`^${wanted.replace(/[.()]/g, '\\$&')}$`),
    );
  });
  test('unknown tool [M-23]', () =>
    expect(error({}, 'python')).toBe("Unknown tool 'python'. The only tool is bash."));
  test('a good one is its command, untouched', () => expect(error({ command: ' ls \n' })).toBe(' ls \n'));
});

function run(replies: ModelReply[], outcomes: Outcome[], more = {}) {
  const model = fakeModel(replies);
  const environment = fakeEnvironment(outcomes);
  const agent = createAgent({
    instanceId: 'i',
    model,
    environment,
    config: config({ protocol: 'tool-call', ...more }),
  });
  return { ended: agent.run('t'), model, environment };
}
const done = calls(call('end', { command: 's' }));
/** Every request must be one that a strict provider accepts. */
const allValid = (model: ReturnType<typeof fakeModel>) => {
  for (const query of model.queries) expect(historyProblems(query.messages)).toEqual([]);
};

describe('T-15', () => {
  test('the valid call runs, both ids are answered, the next request is valid [S-32]', async () => {
    const { ended, model, environment } = run(
      [calls(call('good', { command: 'ls' }), call('bad', { cmd: 1 })), done],
      [result('out'), submitted('p')],
    );
    const { messages } = await ended;
    expect(environment.commands).toEqual(['ls', 's']);
    expect(messages.filter((m) => m.role === 'tool').map((m) => m.tool_call_id)).toEqual(['good', 'bad']);
    expect(messages[4]?.content).toContain("Missing 'command'");
    allValid(model);
  });
  test('the invalid one first', async () => {
    const { ended, model, environment } = run(
      [calls(call('bad', '{'), call('good', { command: 'ls' })), done],
      [result('out'), submitted('p')],
    );
    expect((await ended).exitStatus).toBe('Submitted');
    expect(environment.commands).toEqual(['ls', 's']);
    allValid(model);
  });
  test('turns with one good call never end as format errors', async () => {
    const mixed = () => calls(call('good', { command: 'ls' }), call('bad', '{'));
    const { ended } = run(
      [mixed(), mixed(), mixed(), mixed(), done],
      [...Array(4).fill(result('')), submitted('p')],
    );
    expect((await ended).exitStatus).toBe('Submitted');
  });
});

describe('T-14', () => {
  test('nothing valid: every id is answered, three such turns in a row end the attempt', async () => {
    const bad = () => calls(call('a', '{'), call('b', { command: 1 }), call('c', {}, 'x'));
    const { ended, model } = run([bad(), bad(), bad()], []);
    const { messages, exitStatus } = await ended;
    expect(exitStatus).toBe('RepeatedFormatError');
    expect(messages.slice(3, 6).map((m) => m.tool_call_id)).toEqual(['a', 'b', 'c']);
    expect(messages[4]?.content).toContain('must be a string, not a number');
    allValid(model);
  });
  test('the count starts again after a good step [M-16, T-14]', async () => {
    const bad = () => calls(call('a', '{'));
    const { ended } = run(
      [bad(), bad(), calls(call('b', { command: 'ls' })), bad(), bad(), done],
      [result(''), submitted('')],
    );
    expect((await ended).exitStatus).toBe('Submitted');
  });
  test('10 MB of arguments are not sent again; the reply is kept whole in the record', async () => {
    const huge = call('huge', { command: 'y'.repeat(10 * MB) });
    const { ended, model } = run([{ ...calls(huge), raw: { whole: true } }, done], [submitted('p')]);
    const { messages } = await ended;
    expect(JSON.stringify(model.queries[1]?.messages).length).toBeLessThan(20_000);
    expect(messages[3]?.content).toContain('command is 10 MB; limit 1 MB');
    expect(messages[2]?.extra?.response).toEqual({ whole: true });
    allValid(model);
  });
  test('bad arguments stay visible to the model, as JSON', () => {
    expect(sendableArguments('{"command": "ls', MB)).toBe('{"invalid_arguments":"{\\"command\\": \\"ls"}');
    expect(sendableArguments('{"command": "ls"}', MB)).toBe('{"command": "ls"}');
    expect(sendableArguments('[1]', MB)).toBe('{"invalid_arguments":"[1]"}');
  });
  test('missing and repeated ids get one of their own, and are answered by it', async () => {
    expect(withUniqueIds([call('', {}), call('x', {}), call('x', {})], 4).map((c) => c.id)).toEqual([
      'call_4_0',
      'x',
      'call_4_2',
    ]);
    const { ended, model } = run(
      [calls(call('same', { command: 'a' }), call('same', { command: 'b' })), done],
      [result('A'), result('B'), submitted('p')],
    );
    await ended;
    allValid(model);
  });
});

describe('the history validator finds', () => {
  const turn = (...ids: string[]): Message => ({
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => call(id, { command: 'x' })),
  });
  const answer = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: '' });
  test.each<[string, Message[], string[]]>([
    ['nothing wrong', [turn('a', 'b'), answer('b'), answer('a')], []],
    [
      'a call without answer',
      [turn('a', 'b'), answer('a'), { role: 'user', content: '' }],
      ['tool call b has no answer'],
    ],
    ['an answer twice', [turn('a'), answer('a'), answer('a')], ['message 2 answers no open tool call']],
    ['an answer to nothing', [answer('a')], ['message 0 answers no open tool call']],
    ['an id twice', [turn('a', 'a'), answer('a')], ['tool call a appears twice']],
  ])('%s', (_name, messages, wanted) => {
    expect(historyProblems(messages)).toEqual(wanted);
  });
});
