/** Claude at Amazon Bedrock: Messages in its own frames, signed with credentials of AWS. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { systemClock } from '../limits/clock.ts';
import { fixedToken } from './bearer.ts';
import { claudeAt } from './claudeAt.ts';
import type { Cloud, CloudAuth } from './cloud.ts';
import { createCredentials, credentialError } from './cloudCredentials.ts';
import { loadFrames, readFrames } from './eventStream.ts';
import { loadPackages } from './loadPackage.ts';

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
