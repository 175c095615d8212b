// The end of a command, as far as a program tells it: Claude Code has a word for failures only.
import { expect, test } from 'vitest';
import type { CommandRecord } from '../../../src/agent/contract.ts';
import { claudeCode } from '../../../src/agent/installed/claudeCode.ts';
import { createTranscript } from '../../../src/agent/installed/installedAgent.ts';
import { openCode } from '../../../src/agent/installed/openCode.ts';
import type { Message } from '../../../src/model/model.ts';

function codeOf(program: typeof claudeCode, tool: string, answer: string): number {
  const seen: CommandRecord[] = [];
  const transcript = createTranscript(
    { onCommand: (_, command) => void seen.push(command) },
    program,
    () => ({ instanceId: 'i', step: 1 }),
  );
  const call = {
    id: 'c1',
    type: 'function',
    function: { name: tool, arguments: '{"command":"ls"}' },
  } as const;
  const asked: Message = { role: 'assistant', content: null, tool_calls: [call] };
  const told: Message = { role: 'tool', tool_call_id: 'c1', content: answer };
  const base = { thread: 'main', step: 1, startedAt: 0, endedAt: 1, reply: null };
  transcript.add({ ...base, newMessages: [asked] });
  transcript.add({ ...base, newMessages: [told] });
  return seen[0]!.result.exitCode;
}

test.each([
  ['file.txt', 0],
  ['', 0],
  ['Exit code 2\nls: cannot access', 2],
  ['Command timed out after 2m 0.0s', -1],
  ['Command running in background with ID: b1', -1],
  ['<tool_use_error>InputValidationError</tool_use_error>', -1],
])('Claude Code says %j: %d', (answer, code) => {
  expect(codeOf(claudeCode, 'Bash', answer)).toBe(code);
});

test('OpenCode tells no end at all', () => {
  expect(codeOf(openCode, 'bash', 'file.txt')).toBe(-1);
});
