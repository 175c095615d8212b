/** A model of a cloud, settled as the program settles it, asked over HTTP. */
import type { ModelReply } from '../../../src/model/model.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { settleModel } from '../../../src/model/settleModel.ts';
import { ASK, autoClock, configOf, recorder } from '../harness.ts';

const PRICES = { input: 1, output: 10, cache_read: 0.1 };

interface CloudyModel {
  readonly model_name: string;
  readonly env: Record<string, string>;
  readonly settings?: object | undefined;
}

interface Cloudy extends CloudyModel {
  /** The value of the variable that the name means. */
  readonly apiKey?: string;
  readonly times?: number;
}

export function settledCloud({ model_name, env, settings }: CloudyModel) {
  const given = configOf({
    model_name,
    prices: PRICES,
    // Without patience for rate limits.
    retry: { max_retries: 2, base_delay_ms: 1, max_retry_after_s: 0 },
    ...settings,
  });
  const settled = settleModel(given, { env, litellm: false });
  if (!settled.ok) throw new Error(`${settled.message}; ${settled.fix}`);
  return settled.model;
}

export async function askCloud({ model_name, env, settings, apiKey, times = 1 }: Cloudy) {
  const model = settledCloud({ model_name, env, settings });
  const { clock } = autoClock();
  const factory = await createModelFactory(model, { clock, ...(apiKey ? { apiKey } : {}) });
  const { listener, calls } = recorder();
  const answers = [];
  for (let n = 0; n < times; n += 1)
    answers.push(await factory.create({ instanceId: 'i', epoch: 1 }).query(ASK, { listener }));
  await factory.close();
  return { answers, calls, model };
}

export function replied(answer: Awaited<ReturnType<typeof askCloud>>['answers'][number]): ModelReply {
  if (!answer.success) throw new Error(answer.message);
  return answer.result;
}
