/** Gemini and Claude at Vertex AI, by application default credentials. */
import type { Dialect } from '../dialects/dialect.ts';
import { extraHeaders } from '../dialects/kwargs.ts';
import { claudeAt } from '../dialects/messages/messagesDialect.ts';
import { type Cloud, fixedToken, libraryToken, loadPackages } from './cloud.ts';

const SOURCE =
  "Google's application default credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud, the metadata server)";
const PACKAGES = ['google-auth-library'];
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

const gemini = (dialect: Dialect): Dialect => ({
  ...dialect,
  target: (config, model) => ({
    path: `/publishers/google/models/${encodeURIComponent(model)}:${
      config.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    }`,
    headers: extraHeaders(config.model_kwargs),
  }),
});

const claude = (dialect: Dialect): Dialect =>
  claudeAt(dialect, {
    version: 'vertex-2023-10-16',
    streamInBody: true,
    path: (model, stream) =>
      `/publishers/anthropic/models/${encodeURIComponent(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
  });

export const vertex: Cloud = {
  name: 'vertex_ai',
  source: SOURCE,
  packages: PACKAGES,
  dialect: (dialect) => (dialect.name === 'messages' ? claude(dialect) : gemini(dialect)),
  async createAuth(config, apiKey) {
    if (apiKey) return fixedToken(apiKey, `$${config.api_key_env}`);
    const { GoogleAuth } = await loadPackages('vertex_ai', PACKAGES, () => import('google-auth-library'));
    return libraryToken(() => {
      const auth = new GoogleAuth({ scopes: SCOPE });
      return () => auth.getAccessToken();
    }, SOURCE);
  },
};
