/** Google's generateContent. */
import type { Dialect } from '../dialect.ts';
import { extraHeaders } from '../kwargs.ts';
import { geminiParameters } from './geminiParameters.ts';
import { factsOf, readGenerated } from './geminiReply.ts';
import { assembleGenerated } from './geminiStream.ts';
import { readUsageMetadata } from './geminiUsage.ts';
import { createGeminiWriter } from './geminiWriter.ts';

export const geminiDialect: Dialect = {
  name: 'gemini',
  wrote: ({ candidates }) => Array.isArray(candidates),
  target: (config, model, apiKey) => ({
    path: `/models/${encodeURIComponent(model)}:${config.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: { 'x-goog-api-key': apiKey, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => geminiParameters(config, tools, 'own'),
  createWriter: createGeminiWriter,
  read: readGenerated,
  factsOf,
  readUsage: readUsageMetadata,
  assemble: assembleGenerated,
};
