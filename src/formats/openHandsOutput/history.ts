/**
 * The history of an instance in its three forms: pairs of action and observation (before 0.15), a flat list of events, and the events of the SDK,
 * which name their kind. Unknown events are left out.
 */
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { timestampOrNull, tokensOrNull } from '../../base/plausible.ts';
import { contentText, stringOf } from '../../base/text/contentText.ts';
import { plausibleNano } from '../../money.ts';
import { type RecordedCall, tokensOfPrompt, wholeCall } from '../foreignFormat.ts';

type Json = Readonly<Record<string, unknown>>;

interface ReadHistory {
  readonly messages: readonly Json[];
  readonly calls: readonly RecordedCall[];
  /** Actions of the agent. */
  readonly steps: number;
  /** Seconds since 1970. */
  readonly times: readonly number[];
}

export function readHistory(history: readonly unknown[], metrics: Json): ReadHistory {
  const events = history
    .flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : [each]))
    .filter(isRecord);
  const responses = responsesOf(events);
  const seen = new Set<unknown>();
  const messages = events.flatMap((event) =>
    typeof event.kind === 'string' ? sdkMessages(event) : eventMessages(event, seen),
  );
  const calls = callsOf(metrics, responses);
  const acted = messages.filter(({ role }) => role === 'assistant').length;
  const whole = calls.length === 1 && responses.length !== 1;
  return {
    messages,
    calls,
    steps: whole || calls.length === 0 ? acted : calls.length,
    times: events.flatMap(({ timestamp }) => secondsOf(timestamp) ?? []),
  };
}

/** The seconds of a time; without a zone it is of an unknown machine: UTC. */
function secondsOf(timestamp: unknown): number | null {
  if (typeof timestamp === 'number') return timestampOrNull(timestamp);
  if (typeof timestamp !== 'string' || timestamp.length > 50) return null;
  return timestampOrNull(
    Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(timestamp) ? timestamp : `${timestamp}Z`) / 1000,
  );
}

/** A content, its parts, or a part that stands alone. */
const saidIn = (content: unknown): string => contentText(isRecord(content) ? [content] : content);

const calledBy = (id: unknown, name: unknown, given: unknown): Json => ({
  ...{ id: stringOf(id), type: 'function' },
  function: {
    name: stringOf(name),
    arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
  },
});

/** The messages of the SDK (2025 and later). */
function sdkMessages(event: Json): Json[] {
  const { kind } = event;
  if (kind === 'SystemPromptEvent') return [{ role: 'system', content: saidIn(event.system_prompt) }];
  if (kind === 'MessageEvent') {
    const { role, content } = recordOf(event.llm_message);
    return [
      { role: stringOf(role) || (event.source === 'agent' ? 'assistant' : 'user'), content: saidIn(content) },
    ];
  }
  if (kind === 'ActionEvent') {
    const call = recordOf(event.tool_call);
    const named = isRecord(call.function) ? call.function : call;
    const id = event.tool_call_id ?? call.id;
    return [
      {
        role: 'assistant',
        content: saidIn(event.thought),
        ...(event.reasoning_content ? { reasoning_content: saidIn(event.reasoning_content) } : {}),
        tool_calls: [calledBy(id, named.name ?? event.tool_name, named.arguments ?? event.action)],
      },
    ];
  }
  const failed = kind === 'AgentErrorEvent' || kind === 'UserRejectObservation';
  if (kind !== 'ObservationEvent' && !failed) return [];
  const seen = recordOf(event.observation);
  const said = [seen.content, seen.output, seen.text, seen.message, event.error, event.rejection_reason].map(
    saidIn,
  );
  return [
    {
      role: 'tool',
      tool_call_id: stringOf(event.tool_call_id),
      content: said.find((text) => text !== '') ?? '',
    },
  ];
}

/** Of OpenDevin and OpenHands until 1.0. Several actions may be of one reply; what it says stands with the first of them. */
function eventMessages(event: Json, seen: Set<unknown>): Json[] {
  const meta = recordOf(event.tool_call_metadata);
  const args = recordOf(event.args);
  if (typeof event.observation === 'string') {
    if (event.observation === 'null') return [];
    const content = saidIn(event.content) || stringOf(event.message);
    const id = stringOf(meta.tool_call_id);
    return [id ? { role: 'tool', tool_call_id: id, content } : { role: 'user', content }];
  }
  const { action } = event;
  if (
    typeof action !== 'string' ||
    action === 'recall' ||
    action === 'null' ||
    action === 'change_agent_state'
  )
    return [];
  if (action === 'system')
    return [{ role: 'system', content: stringOf(args.content) || stringOf(event.message) }];
  if (event.source === 'user')
    return [{ role: 'user', content: stringOf(args.content) || stringOf(event.message) }];
  const response = recordOf(meta.model_response);
  const reply = messageOf(response);
  const calls = Array.isArray(reply.tool_calls) ? reply.tool_calls.filter(isRecord) : [];
  const id = meta.tool_call_id;
  const call = calls.find((each) => each.id === id);
  const first = response.id === undefined || !seen.has(response.id);
  seen.add(response.id);
  const thought =
    stringOf(args.thought) || stringOf(args.content) || (id === undefined ? stringOf(event.message) : '');
  return [
    {
      role: 'assistant',
      content: first ? saidIn(reply.content) || thought : '',
      ...(typeof id === 'string' && {
        tool_calls: [call ?? calledBy(id, meta.function_name, withoutThought(args))],
      }),
      ...(id === undefined && action !== 'message' && { action: { action, args: withoutThought(args) } }),
    },
  ];
}

const withoutThought = ({ thought: _, ...args }: Json): Json => args;

const messageOf = (response: Json): Json =>
  recordOf(recordOf(Array.isArray(response.choices) ? response.choices[0] : undefined).message);

/** The replies, each once: its actions and their observations all carry it. */
function responsesOf(events: readonly Json[]): Json[] {
  const found = new Map<unknown, Json>();
  for (const event of events) {
    const response = recordOf(event.tool_call_metadata).model_response;
    if (isRecord(response) && response.id !== undefined && !found.has(response.id))
      found.set(response.id, response);
  }
  return [...found.values()];
}

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isRecord) : []);

/** The metrics of each call, else the replies in the history, else the costs alone, else the sums. */
function callsOf(metrics: Json, responses: readonly Json[]): RecordedCall[] {
  const costs = listOf(metrics.costs);
  const usages = listOf(metrics.token_usages);
  const sources =
    usages.length > 0
      ? usages.map((usage) => ({ usage, model: usage.model, id: usage.response_id }))
      : responses.map(({ usage, model, id }) => ({ usage: recordOf(usage), model, id }));
  const each = sources.length > 0 ? sources : costs.map(({ model }) => ({ usage: null, model, id: null }));
  if (each.length > 0)
    return each.map(({ usage, model, id }, at) => {
      // Costs and replies are of one another where there are as many.
      const own = costs.length === each.length ? costs[at]! : {};
      return callOf(at + 1, usage, {
        model: stringOf(model) || null,
        responseId: stringOf(id) || null,
        costNano: plausibleNano(own.cost),
        at: timestampOrNull(own.timestamp),
        notes: [],
      });
    });
  const sum = recordOf(metrics.accumulated_token_usage);
  const cost = plausibleNano(metrics.accumulated_cost);
  const used = tokensOrNull(sum.prompt_tokens) || tokensOrNull(sum.completion_tokens) || cost;
  return used ? [callOf(1, sum, { costNano: cost || null })] : [];
}

function callOf(step: number, usage: Json | null, stated: Partial<RecordedCall>): RecordedCall {
  return wholeCall({
    ...tokensOfPrompt({
      prompt: usage?.prompt_tokens,
      cached: usage?.cache_read_tokens ?? recordOf(usage?.prompt_tokens_details).cached_tokens,
      written: usage?.cache_write_tokens,
      completion: usage?.completion_tokens,
      reasoning: usage?.reasoning_tokens ?? recordOf(usage?.completion_tokens_details).reasoning_tokens,
    }),
    step,
    rawUsage: usage,
    ...stated,
  });
}
