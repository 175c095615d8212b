/** What a provider would reject in a history: every tool call answered exactly once, right after it, and nothing else answered. */

interface Sent {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id?: unknown }[];
  readonly tool_call_id?: unknown;
}

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool']);
/** OpenAI's cap on one text. */
const MAX_CHARACTERS = 10_485_760;

export function historyProblems(messages: readonly Sent[]): string[] {
  const problems: string[] = [];
  let open = new Set<unknown>();
  const close = (at: number) => {
    for (const id of open) problems.push(`messages.${at}: tool call ${String(id)} has no answer`);
    open = new Set();
  };
  for (const [at, message] of messages.entries()) {
    if (!ROLES.has(String(message.role))) problems.push(`messages.${at}: role ${String(message.role)}`);
    if ('extra' in message) problems.push(`messages.${at}: extra was sent`);
    if (JSON.stringify(message).length > MAX_CHARACTERS) problems.push(`messages.${at}: too long`);
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id))
        problems.push(`messages.${at}: answers ${String(message.tool_call_id)}, which was not asked`);
      continue;
    }
    close(at);
    if (message.role === 'assistant') open = new Set((message.tool_calls ?? []).map((call) => call.id));
    else if (typeof message.content !== 'string' && !Array.isArray(message.content))
      problems.push(`messages.${at}: content is no text`);
  }
  close(messages.length);
  return problems;
}
