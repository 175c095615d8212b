// A call that the gateway answered, as the record hears of it, with as much of it as a test cares for.
import type { GatewayCall } from '../../../src/agent/gateway/gateway.ts';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';

export interface CallUnderTest {
  readonly index?: number;
  readonly thread?: string;
  readonly dialect?: DialectName;
  /** The body that went out. */
  readonly sent?: unknown;
  /** What the program got. */
  readonly got?: string;
  readonly newMessages?: GatewayCall['newMessages'];
}

export function answeredCall(call: CallUnderTest): GatewayCall {
  const { index = 0, thread = 'main', dialect = 'chat', sent = {}, got = '{}', newMessages = [] } = call;
  const last = newMessages.at(-1);
  return {
    ...{ index, step: index + 1, thread, newMessages, startedAt: 1000 * index, endedAt: 1000 * index + 500 },
    label: thread === 'main' ? { kind: 'main' } : { kind: 'subagent', id: thread },
    reply:
      last?.role === 'assistant'
        ? {
            ...{ message: last, content: '', toolCalls: [], finishReason: null, modelId: null },
            ...{ usage: null, costNano: null, raw: null },
          }
        : null,
    ...{ dialect, modelAsked: 'm-1', model: 'm-1', operation: 'generate', streamed: false },
    ...{ status: 200, request: sent, sent: Buffer.from(JSON.stringify(sent)), stripped: [] },
    ...{ response: null, failure: null, translated: null },
    answer: { end: 'whole', status: 200, headers: {}, bytes: Buffer.from(got) },
  };
}
