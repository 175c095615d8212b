/** Whether a strict provider would take a history. */
import type { Message } from '../../src/model/model.ts';

/** What is wrong with a history that goes to a provider: each call answered exactly once, right after its turn. Empty when nothing is. */
export function historyProblems(messages: readonly Message[]): string[] {
  const problems: string[] = [];
  let open = new Set<string>();
  const close = (): void => {
    for (const id of open) problems.push(`tool call ${id} has no answer`);
    open = new Set();
  };
  for (const [i, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id ?? '')) problems.push(`message ${i} answers no open tool call`);
      continue;
    }
    close();
    for (const call of message.tool_calls ?? []) {
      if (open.has(call.id)) problems.push(`tool call ${call.id} appears twice`);
      open.add(call.id);
      if (!isJsonObject(call.function.arguments))
        problems.push(`tool call ${call.id} has arguments that are not JSON`);
    }
  }
  close();
  return problems;
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
