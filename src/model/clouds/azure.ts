/** OpenAI's models at Azure: chat completions and Responses, by a key or by a token of Entra ID. */
import { extraHeaders } from '../dialects/kwargs.ts';
import { bearer, type Cloud, fixedToken, libraryToken, loadPackages } from './cloud.ts';

const SOURCE = "Azure's default chain (AZURE_CLIENT_ID, managed identity, az login)";
const PACKAGES = ['@azure/identity'];
const SCOPE = 'https://cognitiveservices.azure.com/.default';

/** Whether the interface has no date. The query names its `preview` all the same. */
const isUndated = (version: string): boolean => ['v1', 'latest', 'preview'].includes(version);

function pathOf(dialect: 'chat' | 'responses', model: string, version: string): string {
  const name = dialect === 'chat' ? 'chat/completions' : 'responses';
  if (isUndated(version)) return `/openai/v1/${name}${version === 'preview' ? '?api-version=preview' : ''}`;
  const query = `?api-version=${encodeURIComponent(version)}`;
  return dialect === 'chat'
    ? `/openai/deployments/${encodeURIComponent(model)}/${name}${query}`
    : `/openai/${name}${query}`;
}

interface Token {
  readonly token: string;
  readonly expiresOnTimestamp: number;
  readonly refreshAfterTimestamp?: number;
}

const SPARE_MS = 5 * 60_000;

/** The chain asks its place for every token anew; many calls share one, until it is nearly over. */
function keptToken(get: () => Promise<Token>): () => Promise<string> {
  let held: Promise<Token> | undefined;
  let until = 0;
  return async () => {
    if (!held || Date.now() >= until) {
      until = Number.POSITIVE_INFINITY;
      const next = get();
      held = next;
      next.then(
        ({ refreshAfterTimestamp, expiresOnTimestamp }) => {
          until = refreshAfterTimestamp ?? expiresOnTimestamp - SPARE_MS;
        },
        () => {
          held = undefined;
        },
      );
    }
    return (await held).token;
  };
}

/**
 * A claim that Azure asks for where a token was taken back: without the claim the library gives the old token out of its memory (observed:
 * tests/model/clouds/azure.test.ts).
 */
const notBefore = (): string =>
  JSON.stringify({
    access_token: { nbf: { essential: true, value: String(Math.floor(Date.now() / 1000)) } },
  });

export const azure: Cloud = {
  name: 'azure',
  source: SOURCE,
  packages: PACKAGES,
  dialect: (dialect) => ({
    ...dialect,
    target: (config, model) => ({
      path: pathOf(
        dialect.name === 'responses' ? 'responses' : 'chat',
        model,
        String(config.model_kwargs.api_version ?? 'v1'),
      ),
      headers: extraHeaders(config.model_kwargs),
    }),
  }),
  async createAuth(config, apiKey) {
    const token = config.api_key_env === 'AZURE_AD_TOKEN';
    if (apiKey)
      return fixedToken(apiKey, `$${config.api_key_env}`, token ? bearer : (key) => ({ 'api-key': key }));
    const { DefaultAzureCredential } = await loadPackages('azure', PACKAGES, () => import('@azure/identity'));
    return libraryToken((again) => {
      const credential = new DefaultAzureCredential();
      return keptToken(() => credential.getToken(SCOPE, again ? { claims: notBefore() } : {}));
    }, SOURCE);
  },
};
