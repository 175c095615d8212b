// The end of a command, as far as a program tells it: Claude Code has a word for failures only.
import { expect, test } from 'vitest';
import type { CommandRecord } from '../../../src/agent/contract.ts';
import { acpAgent } from '../../../src/agent/installed/acpAgent.ts';
import { claudeCode } from '../../../src/agent/installed/claudeCode.ts';
import { commandAgent } from '../../../src/agent/installed/commandAgent.ts';
import { createTranscript } from '../../../src/agent/installed/installedAgent.ts';
import { openCode } from '../../../src/agent/installed/openCode.ts';
import type { Message } from '../../../src/model/model.ts';

function codeOf(program: typeof claudeCode, tool: string, answer: string): number | null {
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
  ['Command timed out after 2m 0.0s', null],
  ['Command running in background with ID: b1', null],
  ['<tool_use_error>InputValidationError</tool_use_error>', null],
])('Claude Code says %j: %s', (answer, code) => {
  expect(codeOf(claudeCode, 'Bash', answer)).toBe(code);
});

test('OpenCode tells no end at all', () => {
  expect(codeOf(openCode, 'bash', 'file.txt')).toBeNull();
  // A file that a command printed says nothing of the command.
  expect(codeOf(openCode, 'bash', '{"exit_code": 3}')).toBeNull();
});

test.each<[string, number | null]>([
  ['{"returncode": 2, "output": "no"}', 2],
  ['{"output":"x","exit_code":0}', 0],
  ['{"stdout":"","stderr":"","exitCode":127,"interrupted":false}', 127],
  ['{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}', 1],
  ['{"result":{"return_code":"-9"}}', -9],
  ['[{"exitStatus": 4}]', 4],
  ['<returncode>5</returncode>\n<output>\n', 5],
  ['{"exit_code": null, "output": "still there"}', null],
  ['{"exit_code": true}', null],
  ['{"exit_code": 1', null],
  ['{"exit_code": 1.5}', null],
  ['total 0\n{"exit_code": 1}', null],
  ['a b', null],
  ['', null],
])('a program that nobody knows says %j: %s', (answer, code) => {
  for (const program of [commandAgent, acpAgent]) expect(codeOf(program, 'run', answer)).toBe(code);
});
