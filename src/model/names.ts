/**
 * The meaning of a model's name: litellm's prefixes, and the bare names of the large makers, choose dialect, address and key.
 * `anthropic/claude-opus-4-5` and `claude-opus-4-5` are Anthropic's; `openrouter/anthropic/claude-opus-4.5` is OpenRouter's.
 */

import { stripChars } from '../base/python/text.ts';
import type { DialectName } from './dialects/dialects.ts';
import type { ModelConfig } from './modelConfig.ts';

/** Clouds that serve models of several makers, with credentials of their own (model/clouds). */
export type CloudName = 'azure' | 'bedrock' | 'vertex_ai';

export interface Provider {
  /** litellm's prefix, without the slash. */
  readonly prefix: string;
  readonly dialect: DialectName;
  /** Variables that may hold the key; the first that is set counts. */
  readonly keys: readonly string[];
  /** The provider's address; null where only the user knows it (a server of one's own). */
  readonly baseUrl: string | null;
  /** Variables that may hold another address. */
  readonly baseUrls: readonly string[];
  /** A server of one's own may need no key. */
  readonly keyOptional?: boolean;
  /** Without a key it is asked with credentials of the cloud. */
  readonly cloud?: CloudName;
  /** The dialect of a name without the prefix, where not all are asked in the same. */
  readonly dialectOf?: (rest: string) => DialectName;
  /** The provider's name in genai-prices, where that is another word than the prefix. */
  readonly pricedAs?: string;
  /** litellm's word for a way to ask, between prefix and model. */
  readonly way?: RegExp;
}

const compatible = (prefix: string, baseUrl: string, variable = prefix.toUpperCase()): Provider => ({
  prefix,
  dialect: 'chat',
  keys: [`${variable}_API_KEY`],
  baseUrl,
  baseUrls: [`${variable}_API_BASE`],
});

const ownServer = (prefix: string, baseUrl: string | null, variable = prefix.toUpperCase()): Provider => ({
  ...compatible(prefix, '', variable),
  baseUrl,
  keyOptional: true,
});

export const OPENAI: Provider = {
  prefix: 'openai',
  dialect: 'chat',
  keys: ['OPENAI_API_KEY'],
  baseUrl: 'https://api.openai.com/v1',
  baseUrls: ['OPENAI_BASE_URL', 'OPENAI_API_BASE'],
};

export const PROVIDERS: readonly Provider[] = [
  OPENAI,
  {
    prefix: 'anthropic',
    dialect: 'messages',
    keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    baseUrl: 'https://api.anthropic.com',
    baseUrls: ['ANTHROPIC_BASE_URL', 'ANTHROPIC_API_BASE'],
  },
  {
    prefix: 'gemini',
    dialect: 'gemini',
    keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    baseUrls: ['GOOGLE_GEMINI_BASE_URL', 'GEMINI_API_BASE'],
    pricedAs: 'google',
  },
  compatible('openrouter', 'https://openrouter.ai/api/v1'),
  compatible('deepseek', 'https://api.deepseek.com'),
  compatible('mistral', 'https://api.mistral.ai/v1'),
  { ...compatible('xai', 'https://api.x.ai/v1'), pricedAs: 'x-ai' },
  compatible('groq', 'https://api.groq.com/openai/v1'),
  { ...compatible('together_ai', 'https://api.together.xyz/v1', 'TOGETHER_AI'), pricedAs: 'together' },
  {
    ...compatible('fireworks_ai', 'https://api.fireworks.ai/inference/v1', 'FIREWORKS_AI'),
    pricedAs: 'fireworks',
  },
  { ...compatible('moonshot', 'https://api.moonshot.ai/v1'), pricedAs: 'moonshotai' },
  compatible('zai', 'https://api.z.ai/api/paas/v4'),
  compatible('dashscope', 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1'),
  {
    prefix: 'azure',
    cloud: 'azure',
    dialect: 'chat',
    dialectOf: (rest) => (rest.startsWith('responses/') ? 'responses' : 'chat'),
    way: /^responses\//,
    keys: ['AZURE_API_KEY', 'AZURE_AD_TOKEN'],
    baseUrl: null,
    baseUrls: ['AZURE_API_BASE'],
  },
  {
    prefix: 'bedrock',
    cloud: 'bedrock',
    dialect: 'messages',
    way: /^(invoke|converse)\//,
    keys: ['AWS_BEARER_TOKEN_BEDROCK'],
    baseUrl: null,
    baseUrls: ['AWS_BEDROCK_RUNTIME_ENDPOINT'],
    pricedAs: 'aws',
  },
  {
    prefix: 'vertex_ai',
    cloud: 'vertex_ai',
    dialect: 'gemini',
    dialectOf: (rest) => (/claude/.test(rest) ? 'messages' : 'gemini'),
    keys: ['GOOGLE_OAUTH_ACCESS_TOKEN'],
    baseUrl: null,
    baseUrls: ['VERTEXAI_API_BASE'],
    pricedAs: 'google',
  },
  ownServer('hosted_vllm', null),
  ownServer('ollama_chat', 'http://localhost:11434/v1', 'OLLAMA'),
  ownServer('litellm_proxy', null),
];

/** The large makers, whose models have bare names. */
export const isMaker = ({ prefix }: Provider): boolean => ['openai', 'anthropic', 'gemini'].includes(prefix);

/** Variables that clients of the large makers read without being told. */
export const MAKERS_ADDRESSES: readonly string[] = PROVIDERS.filter(isMaker).flatMap(
  ({ baseUrls }) => baseUrls,
);

/** The use that a provider's client makes of a variable, and the path of an address there; undefined for a variable of no provider. */
export function clientVariable(
  name: string,
): { readonly is: 'key' | 'address'; readonly path: string } | undefined {
  for (const { keys, baseUrls, dialect } of PROVIDERS) {
    // OpenAI's clients take the version for a part of the address; others add it.
    const path = dialect === OPENAI.dialect ? '/v1' : '';
    if (keys.includes(name)) return { is: 'key', path };
    if (baseUrls.includes(name)) return { is: 'address', path };
  }
  return undefined;
}

/** A name without a prefix whose maker is certain. */
const BARE: readonly (readonly [RegExp, string])[] = [
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'gemini'],
  [/^(gpt-|o\d|chatgpt-|codex-)/, 'openai'],
];

/** OpenAI's models that think lose their thought between turns in chat completions. */
const THINKING_OPENAI = /^(gpt-(?:[5-9]|\d\d)|o\d|codex-)/;

/** Google's own variable names the host; the version belongs to the path. */
export function addressFrom(variable: string, value: string): string {
  const trimmed = stripChars(value, '/', 'right');
  return variable === 'GOOGLE_GEMINI_BASE_URL' && !/\/v\d\w*$/.test(trimmed) ? `${trimmed}/v1beta` : trimmed;
}

/** All that a name means, with the address and the dialect of its configuration: for requests, parameters, prices and descriptions. */
export interface NamedModel {
  /** null: no provider is known by this name; an OpenAI-compatible server is asked. */
  readonly provider: Provider | null;
  /** The name without the provider's prefix. */
  readonly model: string;
  /** The name that goes over the wire. */
  readonly sentAs: string;
  readonly dialect: DialectName;
  /** null: only the user knows it. */
  readonly address: string | null;
  /** OpenAI's that lose their thoughts in chat completions. */
  readonly thinks: boolean;
}

type NamedConfig = Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect'>;

const byPrefix = new Map(PROVIDERS.map((provider) => [provider.prefix, provider]));

/** Routers have names of their own, which look like prefixes: OpenRouter knows `anthropic/claude-opus-4.5`, and so do Portkey and Requesty. */
const ROUTERS: readonly (readonly [host: RegExp, prefix: string | null])[] = [
  [/(^|\.)openrouter\.ai$/, 'openrouter'],
  [/(^|\.)portkey\.ai$/, null],
  [/(^|\.)requesty\.ai$/, null],
];

function routerAt(baseUrl: string | undefined): { readonly prefix: string | null } | null {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return null;
  const { hostname } = new URL(baseUrl);
  const found = ROUTERS.find(([host]) => host.test(hostname));
  return found ? { prefix: found[1] } : null;
}

/** `rest`: the name as it stands behind the prefix. */
function providerOf(name: string, baseUrl: string | undefined): { provider: Provider; rest: string } | null {
  const router = routerAt(baseUrl);
  if (router) {
    const provider = router.prefix === null ? undefined : byPrefix.get(router.prefix);
    const own = `${router.prefix}/`;
    return provider ? { provider, rest: name.startsWith(own) ? name.slice(own.length) : name } : null;
  }
  const slash = name.indexOf('/');
  const prefixed = slash > 0 ? byPrefix.get(name.slice(0, slash)) : undefined;
  if (prefixed) return { provider: prefixed, rest: name.slice(slash + 1) };
  // With an address of one's own a bare name is whatever the server there calls it, and chat is what such servers speak.
  if (baseUrl !== undefined || slash > 0) return null;
  const maker = BARE.find(([pattern]) => pattern.test(name))?.[1];
  return maker ? { provider: byPrefix.get(maker)!, rest: name } : null;
}

export function namedModel(config: NamedConfig): NamedModel {
  const { model_name: name = '', base_url, dialect } = config;
  const known = providerOf(name, base_url);
  if (!known) {
    const address = base_url ?? OPENAI.baseUrl;
    return {
      provider: null,
      model: name,
      sentAs: name,
      dialect: dialect ?? OPENAI.dialect,
      address,
      thinks: false,
    };
  }
  const { provider, rest } = known;
  const model = provider.way ? rest.replace(provider.way, '') : rest;
  const thinks = THINKING_OPENAI.test(model);
  const usual = provider.dialectOf?.(rest) ?? provider.dialect;
  // OpenAI's prefix stays where an address is given: a server of one's own may mean it (`openai/gpt-oss-120b`).
  const keepsPrefix = provider === OPENAI && base_url !== undefined && dialect === undefined;
  return {
    provider,
    model,
    sentAs: keepsPrefix ? name : model,
    dialect: dialect ?? (provider === OPENAI && base_url === undefined && thinks ? 'responses' : usual),
    address: base_url ?? provider.baseUrl,
    thinks,
  };
}
