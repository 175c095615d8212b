/** A reply of generateContent; streamed it is one chunk. Pure. */
import { objectOfText } from './argumentText.ts';
import type { CommonReply, WrittenReply } from './commonForm.ts';

const FINISH: Readonly<Record<string, string>> = { length: 'MAX_TOKENS', content_filter: 'SAFETY' };

export function geminiAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const parts = [
    ...(content === '' ? [] : [{ text: content }]),
    ...toolCalls.map((call) => ({
      functionCall: {
        ...{ id: call.id, name: call.function.name },
        args: objectOfText(call.function.arguments),
      },
    })),
  ];
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const whole = {
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: FINISH[finish] ?? 'STOP' }],
    usageMetadata: {
      promptTokenCount: prompt,
      cachedContentTokenCount: usage.cacheRead,
      candidatesTokenCount: usage.output - usage.reasoning,
      thoughtsTokenCount: usage.reasoning,
      totalTokenCount: prompt + usage.output,
    },
    modelVersion: model,
    responseId: id,
  };
  return { whole, events: [[null, whole]] };
}
