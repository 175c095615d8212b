/** What kind of call a program makes. Pure. */
import type { CallLabel } from './gateway.ts';
import type { Allowed, Ask } from './policy.ts';
import { subAgentOf } from './requestHeaders.ts';

export const isStep = (label: CallLabel): boolean => label.kind === 'main' || label.kind === 'subagent';

export function labelOf({ operation, headers }: Ask, { hasTools }: Allowed): CallLabel {
  if (operation === 'count_tokens') return { kind: 'count_tokens' };
  const id = subAgentOf(headers);
  if (id !== null) return { kind: 'subagent', id };
  return hasTools ? { kind: 'main' } : { kind: 'title' };
}
