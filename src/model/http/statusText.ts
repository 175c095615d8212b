/** What a status of the request's own making means for people, with what to do. */
import type { Verdict } from '../classify.ts';
import type { CloudAuth } from '../clouds/cloud.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { parameterFix } from '../parameters/rejectedParameter.ts';

/** Who was asked. */
interface Endpoint {
  readonly model: string;
  readonly host: string;
  readonly baseUrl: string;
  readonly config: ModelConfig;
  readonly auth?: CloudAuth | undefined;
}

interface Told {
  readonly status: number;
  /** The provider's words, shortened and without secrets. */
  readonly message: string;
  /** The parameter that a refusal names. */
  readonly parameter: string | null;
  /** Why a cloud did not take its credentials, where it says so. */
  readonly because?: string | null;
}

function authText({ model, host, config, auth }: Endpoint, { status, message, because }: Told): string {
  const place = `for model ${model} at host ${host}`;
  if (because) return `authentication failed (${status}) ${place} — ${because}`;
  const key = auth ? `the credentials from ${auth.source}` : `the key in $${config.api_key_env}`;
  if (status === 403)
    return `access denied (403) ${place} — check that ${key} may use it from here; it said: "${message}"`;
  // No word of the provider's here: they repeat the key.
  return `authentication failed (${status}) ${place} — check ${auth ? auth.source : `$${config.api_key_env}`}`;
}

export function statusText(endpoint: Endpoint, verdict: Verdict, told: Told): string {
  const { model, host, config, baseUrl } = endpoint;
  const { status, message, parameter } = told;
  switch (verdict.kind) {
    case 'config':
      return `${parameter ?? 'a parameter'} rejected (${status}) by ${host} for model ${model} — ${parameterFix(parameter ?? 'max_tokens', config.model_kwargs)}; it said: "${message}"`;
    case 'auth':
      return authText(endpoint, told);
    case 'not_found':
      return `model not found (${status}): ${baseUrl} does not serve "${model}" — check model_name and base_url; it said: "${message}"`;
    case 'quota':
      return `no quota left (${status}) for model ${model} at host ${host} — check the account's plan and billing; it said: "${message}"`;
    case 'context':
      return `context window exceeded (${status}): ${message}`;
    case 'refusal':
      return `the provider refused the request (${status}): ${message}`;
    case 'rejected':
      return `request rejected (${status}) by ${host}: ${message}`;
    default:
      if (verdict.code === 'RATE_LIMITED') return `rate limited (${status})`;
      return status >= 500 ? `server error (${status})` : `request failed (${status})`;
  }
}
