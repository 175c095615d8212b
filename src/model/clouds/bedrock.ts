/** Claude at Amazon Bedrock: Messages in its own frames, signed with credentials of AWS. */

import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import type { EventStreamCodec } from '@smithy/eventstream-codec';
import { ownEntry } from '../../base/isRecord.ts';
import type { StreamEvent } from '../dialects/dialect.ts';
import { claudeAt } from '../dialects/messages/messagesDialect.ts';
import { asObject, asText } from '../dialects/shapes.ts';
import { systemClock } from '../limits/clock.ts';
import {
  type Cloud,
  type CloudAuth,
  createCredentials,
  credentialError,
  fixedToken,
  loadPackages,
} from './cloud.ts';

const PACKAGES = ['@aws-sdk/credential-provider-node', '@smithy/signature-v4', '@smithy/eventstream-codec'];

/** Node's own SHA-256 in the form that the signer asks for. */
class Sha256 {
  private readonly state: Hash | Hmac;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.state =
      secret === undefined ? createHash('sha256') : createHmac('sha256', secret as Uint8Array | string);
  }
  update(data: string | Uint8Array): void {
    this.state.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.state.digest();
  }
}

const SOURCE = "AWS's default chain (AWS_ACCESS_KEY_ID, AWS_PROFILE, SSO, roles)";

async function signing(region: string): Promise<CloudAuth> {
  const [{ defaultProvider }, { SignatureV4 }] = await loadPackages('bedrock', PACKAGES, () =>
    Promise.all([import('@aws-sdk/credential-provider-node'), import('@smithy/signature-v4')]),
  );
  const credentials = createCredentials(() => {
    const provider = defaultProvider({ clientConfig: { region } });
    return () => provider();
  });
  const secrets = new Set<string>();
  return {
    async authorize({ url, headers, body }) {
      const held = await credentials.current().catch((error: unknown) => {
        throw credentialError(SOURCE, error, systemClock.wall());
      });
      const { secretAccessKey, sessionToken } = held.value;
      for (const secret of [secretAccessKey, sessionToken]) if (secret) secrets.add(secret);
      const signer = new SignatureV4({
        credentials: held.value,
        region,
        service: 'bedrock',
        sha256: Sha256 as never,
      });
      const signed = await signer.sign({
        method: 'POST',
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        headers: { ...headers, host: url.host },
        body,
      });
      const { host: _host, ...sent } = signed.headers;
      return { headers: sent, generation: held.generation };
    },
    accepted: credentials.accepted,
    renew: credentials.renew,
    secrets: () => [...secrets],
    source: SOURCE,
  };
}

export const bedrock: Cloud = {
  name: 'bedrock',
  source: SOURCE,
  packages: PACKAGES,
  dialect: (dialect) =>
    claudeAt(dialect, {
      version: 'bedrock-2023-05-31',
      streamInBody: false,
      path: (model, stream) =>
        `/model/${encodeURIComponent(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
    }),
  createAuth: async (config, apiKey) =>
    apiKey
      ? fixedToken(apiKey, `$${config.api_key_env}`)
      : await signing(String(config.model_kwargs.aws_region_name ?? '')),
  prepare: () => loadPackages('bedrock', PACKAGES, loadFrames),
  readEvents: readFrames,
};

let codec: typeof EventStreamCodec | undefined;

export async function loadFrames(): Promise<void> {
  codec ??= (await import('@smithy/eventstream-codec')).EventStreamCodec;
}

/** Exceptions by the types of errors that Messages has. */
const TYPES: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  serviceUnavailableException: 'overloaded_error',
  internalServerException: 'api_error',
  modelStreamErrorException: 'api_error',
  modelTimeoutException: 'timeout_error',
  validationException: 'invalid_request_error',
  accessDeniedException: 'permission_error',
};

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const PRELUDE = 4;

function eventOf(frame: Uint8Array): StreamEvent {
  const { headers, body } = new codec!(
    (bytes) => decoder.decode(bytes as Uint8Array),
    (text) => encoder.encode(text),
  ).decode(frame);
  const kind = String(headers[':exception-type']?.value ?? headers[':error-code']?.value ?? '');
  const payload = asObject(JSON.parse(decoder.decode(body) || '{}'));
  if (headers[':message-type']?.value !== 'event') {
    const message =
      asText(payload?.message) ?? asText(headers[':error-message']?.value) ?? (kind || 'an exception');
    return {
      event: 'error',
      data: { type: 'error', error: { type: ownEntry(TYPES, kind) ?? kind, message } },
    };
  }
  const bytes = asText(payload?.bytes);
  const data: unknown = bytes === null ? payload : JSON.parse(Buffer.from(bytes, 'base64').toString());
  return { event: asText(asObject(data)?.type), data };
}

/** No frame of a reply is this long: a length that is no length must not fill the memory. */
const LONGEST = 16 * 1024 * 1024;

/**
 * Rejects when a frame breaks its checksum, and with whatever the body rejects with. A frame that never came whole gives no event (observed:
 * tests/model/clouds/bedrock.test.ts).
 */
export async function* readFrames(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  let wanted = PRELUDE;
  for await (const bytes of body) {
    pieces.push(bytes);
    held += bytes.length;
    // Joined only when a whole frame is there, so that many small pieces cost no more than few.
    while (held >= wanted) {
      const joined = Buffer.concat(pieces);
      const length = joined.readUInt32BE(0);
      if (length <= PRELUDE || length > LONGEST) throw new Error(`a frame of ${length} bytes`);
      wanted = length;
      pieces = [joined];
      if (held < length) break;
      yield eventOf(joined.subarray(0, length));
      const rest = joined.subarray(length);
      pieces = rest.length === 0 ? [] : [rest];
      held = rest.length;
      wanted = PRELUDE;
    }
  }
}
