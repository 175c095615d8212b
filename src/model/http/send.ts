/** How a request leaves: OpenAI's dialects through the openai client, the others straight through the transport. */

import { OpenAI } from 'openai';
import type { CloudAuth } from '../clouds/cloud.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { addressUnder } from './addressUnder.ts';
import type { Exchange } from './exchange.ts';
import type { Transport } from './httpTransport.ts';

interface Parts {
  readonly dialect: Dialect;
  readonly config: ModelConfig;
  readonly model: string;
  readonly apiKey: string;
  readonly baseUrl: string;
  readonly transport: Transport;
  /** Credentials of a cloud, which each request carries. */
  readonly auth?: CloudAuth | undefined;
}

export type Send = (body: Uint8Array, exchange: Exchange) => Promise<Response>;

/** Longer than any deadline of ours: the SDK's own must never fire first. */
const NEVER_MS = 2_147_483_000;

const JSON_BODY = { 'content-type': 'application/json' };

export function createSender(parts: Parts): Send {
  // OpenAI's client would put a key of its own beside the credentials of a cloud.
  return parts.dialect.openAi && !parts.auth ? throughOpenAi(parts) : straight(parts);
}

function throughOpenAi({ dialect, config, model, apiKey, baseUrl, transport }: Parts): Send {
  const client = new OpenAI({
    apiKey,
    baseURL: baseUrl,
    maxRetries: 0,
    // Set, so that nothing comes from the environment behind the config's back.
    organization: null,
    project: null,
    logLevel: 'off',
    fetch: transport.fetch as typeof fetch,
  });
  const { path, headers } = dialect.target(config, model, apiKey);
  // The body is serialised already: the SDK passes bytes through as they are.
  return (body, exchange) =>
    client
      .post(path, {
        body,
        headers: { ...headers, ...JSON_BODY },
        fetchOptions: { exchange } as never,
        timeout: NEVER_MS,
      })
      .asResponse();
}

function straight({ dialect, config, model, apiKey, baseUrl, transport, auth }: Parts): Send {
  const { path, headers } = dialect.target(config, model, apiKey);
  const url = addressUnder(baseUrl, path);
  const plain = { ...headers, ...JSON_BODY };
  return async (body, exchange) => {
    const authorized = await auth?.authorize({ url: new URL(url), headers: plain, body });
    if (authorized) exchange.credentials = authorized.generation;
    const init = { method: 'POST', headers: authorized ? { ...plain, ...authorized.headers } : plain };
    return transport.fetch(url, { ...init, body, exchange } as RequestInit);
  };
}
