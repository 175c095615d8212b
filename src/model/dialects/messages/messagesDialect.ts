/** Anthropic's Messages API, also behind gateways that speak it. */
import { stripChars } from '../../../base/python/text.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { Dialect } from '../dialect.ts';
import { extraHeaders } from '../kwargs.ts';
import { readUsage } from '../usage.ts';
import { messagesParameters } from './messagesParameters.ts';
import { factsOf, readMessage } from './messagesReply.ts';
import { assembleMessages } from './messagesStream.ts';
import { createMessagesWriter } from './messagesWriter.ts';

const VERSION = '2023-06-01';

/** A base URL is given with the version, without it, or whole: each is what some tool of the field expects. */
function pathUnder(baseUrl: string | undefined): string {
  const path = baseUrl === undefined ? '' : stripChars(new URL(baseUrl).pathname, '/', 'right');
  if (path.endsWith('/v1/messages')) return '';
  return path.endsWith('/v1') ? '/messages' : '/v1/messages';
}

/** A key is sent as one; a token of a subscription or a gateway is a bearer's. */
const authorization = (config: ModelConfig, apiKey: string): Record<string, string> =>
  config.api_key_env === 'ANTHROPIC_AUTH_TOKEN'
    ? { authorization: `Bearer ${apiKey}` }
    : { 'x-api-key': apiKey };

export const messagesDialect: Dialect = {
  name: 'messages',
  cachedIsFree: true,
  wrote: ({ type, content }) => type === 'message' && Array.isArray(content),
  target: (config, _model, apiKey) => ({
    path: pathUnder(config.base_url),
    headers: {
      'anthropic-version': VERSION,
      accept: 'application/json',
      ...authorization(config, apiKey),
      ...extraHeaders(config.model_kwargs),
    },
  }),
  parameters: messagesParameters,
  createWriter: (config, model, style) => createMessagesWriter(config, model, style),
  read: readMessage,
  factsOf,
  readUsage,
  assemble: assembleMessages,
};
