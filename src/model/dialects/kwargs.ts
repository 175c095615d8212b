/** `model_kwargs` as mini-swe-agent's configurations have them: parameters of the body, and parameters for litellm. */

import { recordOf } from '../../base/isRecord.ts';
import { words } from '../../base/text/words.ts';
import type { ModelConfig } from '../modelConfig.ts';

/** Parameters of litellm's client, not of the wire: configs of mini-swe-agent carry them, and servers reject what they do not know. */
const CLIENT_ONLY = new Set([
  ...words(`
    drop_params additional_drop_params allowed_openai_params custom_llm_provider num_retries max_retries timeout extra_headers extra_body
  `),
  // Parts of the address where a cloud serves the model (model/clouds).
  ...words('api_version aws_region_name vertex_project vertex_location'),
]);

type Kwargs = Readonly<Record<string, unknown>>;

/** The parameters as they stand in the body; `extra_body` is how the Python SDK names those that it does not know itself. */
export function sentParameters(kwargs: Kwargs): Record<string, unknown> {
  const named = Object.entries(kwargs).filter(([name]) => !CLIENT_ONLY.has(name));
  return { ...Object.fromEntries(named), ...recordOf(kwargs.extra_body) };
}

/** `extra_headers`, as litellm and the OpenAI SDK name them. */
export const extraHeaders = (kwargs: Kwargs): Record<string, string> =>
  Object.fromEntries(
    Object.entries(recordOf(kwargs.extra_headers)).map(([name, value]) => [name, String(value)]),
  );

export interface CacheMark {
  readonly type: 'ephemeral';
  readonly ttl?: '1h';
}

export const cacheMark = (ttl: ModelConfig['cache_ttl']): CacheMark =>
  ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' };
