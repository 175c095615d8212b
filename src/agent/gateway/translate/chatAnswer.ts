/** A reply as a chat completion, plain and streamed. Pure. */
import type { Usage } from '../../../model/model.ts';
import type { CommonReply, WrittenReply } from './commonForm.ts';

function usageOf({ input, cacheRead, cacheWrite, output, reasoning }: Usage) {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

export function chatAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const base = { id, created: Math.floor(Date.now() / 1000), model };
  const calls = toolCalls.map(({ id: callId, type, function: called }) => ({
    ...{ id: callId, type },
    function: { name: called.name, arguments: called.arguments },
  }));
  const message = {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const chunk = (delta: unknown, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    return [null, { ...base, object: 'chat.completion.chunk', choices }] as const;
  };
  const counted = usageOf(usage);
  return {
    whole: {
      ...{ ...base, object: 'chat.completion' },
      choices: [{ index: 0, message, finish_reason: finish }],
      usage: counted,
    },
    events: [
      chunk({ role: 'assistant', content: content === '' ? null : content }),
      ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
      chunk({}, finish),
      [null, { ...base, object: 'chat.completion.chunk', choices: [], usage: counted }],
      [null, '[DONE]'],
    ],
  };
}
