/** Chat completions: OpenAI's older interface, and the one that every compatible server speaks. */
import type { Dialect } from '../dialect.ts';
import { extraHeaders } from '../kwargs.ts';
import { readUsage } from '../usage.ts';
import { factsOf, readCompletion } from './chatReply.ts';
import { assembleStream } from './chatStream.ts';
import { createRequestWriter, requestParameters, sentModel } from './chatWriter.ts';

export const chatDialect: Dialect = {
  name: 'chat',
  defaultBaseUrl: 'https://api.openai.com/v1',
  sentModel,
  target: (config, _model, apiKey) => ({
    path: '/chat/completions',
    headers: { authorization: `Bearer ${apiKey}`, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => requestParameters(config.model_kwargs, config.stream, tools),
  createWriter: (config, model) =>
    createRequestWriter({
      model,
      kwargs: config.model_kwargs,
      stream: config.stream,
      cacheControl: config.set_cache_control,
    }),
  read: readCompletion,
  factsOf,
  readUsage,
  assemble: assembleStream,
};
