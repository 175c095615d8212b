// What a viewer shows of a message beside its text, in the form of every dialect.
import { expect, test } from 'vitest';
import { readMessage } from '../../src/viewer/documents/lenient.ts';

const read = (message: object) => readMessage(JSON.stringify(message));
const CALL = { type: 'function_call', call_id: 'c', name: 'bash', arguments: '{"command":"ls"}' };
const LS = [{ name: 'bash', text: 'ls' }];

test('thought that can be read is shown', () => {
  expect(read({ reasoning_content: 'hm' }).reasoning).toBe('hm');
  const items = [{ type: 'reasoning', summary: [{ text: 'a' }, { text: 'b' }] }, CALL];
  expect(read({ native: { dialect: 'responses', content: items } }).reasoning).toBe('a\nb');
});
test('thought that only the provider can read is named', () => {
  const hidden = '(thought that only the provider can read)';
  const blocks = [{ type: 'redacted_thinking', data: 'xx' }];
  expect(read({ reasoning_content: '', thinking_blocks: blocks }).reasoning).toBe(hidden);
  const items = [{ type: 'reasoning', summary: [], encrypted_content: 'e' }];
  expect(read({ tool_calls: [], native: { dialect: 'responses', content: items } }).reasoning).toBe(hidden);
  expect(read({ content: 'x' }).reasoning).toBeNull();
});
test('an imported response shows its calls, and a call that is stored twice is shown once', () => {
  expect(read({ object: 'response', output: [CALL] })).toEqual({ reasoning: null, toolCalls: LS });
  const tool_calls = [{ id: 'c', function: { name: 'bash', arguments: '{"command":"ls"}' } }];
  expect(read({ tool_calls, native: { dialect: 'responses', content: [CALL] } }).toolCalls).toEqual(LS);
});
test('what is broken is shown as it is, and stops nothing', () => {
  for (const broken of [
    { native: 1 },
    { native: { dialect: 'responses', content: [null, 7, { type: 'reasoning', summary: [null] }] } },
    { object: 'response', output: 'x' },
    { thinking_blocks: [null] },
  ])
    expect(read(broken).toolCalls).toEqual([]);
});
