/** OpenAI's Responses API: the one in which its models keep their reasoning from turn to turn. */
import type { Dialect } from '../dialect.ts';
import { extraHeaders } from '../kwargs.ts';
import { readUsage } from '../usage.ts';
import { responsesParameters } from './responsesParameters.ts';
import { factsOf, readResponse } from './responsesReply.ts';
import { assembleResponse } from './responsesStream.ts';
import { createResponsesWriter } from './responsesWriter.ts';

export const responsesDialect: Dialect = {
  name: 'responses',
  openAi: true,
  wrote: ({ object, output }) => object === 'response' && Array.isArray(output),
  target: (config, _model, apiKey) => ({
    path: '/responses',
    headers: { authorization: `Bearer ${apiKey}`, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => responsesParameters(config, tools, 'own'),
  createWriter: createResponsesWriter,
  read: readResponse,
  factsOf,
  readUsage,
  assemble: assembleResponse,
};
