/** A message of mini-swe-agent's response classes, whose items have no role, in the form that all others have. */
import type { TrajectoryMessage } from '../../formats/miniSweAgent/trajectory.ts';
import { asChatBody } from '../../model/dialects/everyDialect.ts';
import { asObject, contentText } from '../../model/dialects/shapes.ts';

/** The response is the message itself there; here it is kept beside what it says, as with the other classes. */
function fromResponse({ extra, ...response }: TrajectoryMessage): TrajectoryMessage {
  const choices = asObject(asChatBody(response))?.choices;
  const said = asObject(asObject(Array.isArray(choices) ? choices[0] : null)?.message);
  const { native: _items, ...message } = said ?? { content: null };
  return { ...message, role: 'assistant', extra: { ...extra, response } };
}

export function inChatForm(message: TrajectoryMessage): TrajectoryMessage {
  if (message.object === 'response') return fromResponse(message);
  const { type, call_id: id, output, content, ...rest } = message;
  if (type === 'function_call_output') return { ...rest, role: 'tool', tool_call_id: id, content: output };
  return type === 'message' ? { ...rest, content: contentText(content) } : message;
}
