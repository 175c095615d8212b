/** Chat completions: OpenAI's older interface, and the one that every compatible server speaks. */
import type { ModelConfig } from '../../modelConfig.ts';
import { nameMeans, OPENAI } from '../../names.ts';
import type { Dialect } from '../dialect.ts';
import { extraHeaders } from '../kwargs.ts';
import { readUsage } from '../usage.ts';
import { factsOf, readCompletion } from './chatReply.ts';
import { assembleStream } from './chatStream.ts';
import { createRequestWriter, requestParameters } from './chatWriter.ts';

/** OpenRouter says what a call cost when it is asked to. */
const kwargsOf = (config: ModelConfig): Readonly<Record<string, unknown>> =>
  nameMeans(config)?.provider.prefix === 'openrouter'
    ? { usage: { include: true }, ...config.model_kwargs }
    : config.model_kwargs;

export const chatDialect: Dialect = {
  name: 'chat',
  openAi: true,
  target: (config, _model, apiKey) => ({
    path: '/chat/completions',
    headers: { authorization: `Bearer ${apiKey}`, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => requestParameters(kwargsOf(config), config.stream, tools),
  createWriter: (config, model, style) =>
    createRequestWriter({
      model,
      kwargs: kwargsOf(config),
      stream: config.stream,
      cacheControl: config.set_cache_control,
      cacheTtl: config.cache_ttl,
      litellm: style === 'litellm' && (nameMeans(config)?.provider ?? OPENAI) !== OPENAI,
    }),
  read: readCompletion,
  factsOf,
  readUsage,
  assemble: assembleStream,
};
