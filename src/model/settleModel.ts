/**
 * Settles the parts that a model's name leaves open, once, before a run is planned: dialect, address and the variable that holds the key. The record
 * of a run has the answer, so that it goes on as it began wherever it is resumed.
 */
import { settleCloud } from './clouds/cloudAddress.ts';
import { DIALECTS } from './dialects/dialects.ts';
import type { ModelConfig } from './modelConfig.ts';
import { addressFrom, type NamedModel, namedModel, OPENAI, PROVIDERS, type Provider } from './names.ts';
import { checkedParameters } from './parameters/checkParameters.ts';
import { didYouMean, isFreeName } from './prices.ts';

type Settled =
  | {
      readonly ok: true;
      readonly model: ModelConfig;
      readonly warnings?: readonly string[];
      /** The variable that the address was taken from. */
      readonly addressFrom?: string;
    }
  | { readonly ok: false; readonly message: string; readonly fix: string };

interface SettleOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The run imitates mini-swe-agent, whose litellm asks OpenAI for chat completions unless the configuration says otherwise. */
  readonly litellm: boolean;
}

function addressOf(provider: Provider, env: SettleOptions['env']) {
  const variable = provider.baseUrls.find((name) => env[name]);
  return variable === undefined ? undefined : { variable, url: addressFrom(variable, env[variable]!) };
}

const from = (settled: Settled, variable: string | undefined): Settled =>
  settled.ok && variable !== undefined ? { ...settled, addressFrom: variable } : settled;

/** A name that no provider is known by is asked where OpenAI's clients would ask: in OpenAI's protocols, at the address of its variables. */
function settleUnnamed(model: ModelConfig, env: SettleOptions['env']): Settled {
  const { base_url, dialect = OPENAI.dialect } = model;
  const openai = base_url === undefined && DIALECTS[dialect].openAi;
  const elsewhere = openai ? addressOf(OPENAI, env) : undefined;
  if (elsewhere)
    return from(withParameters({ ...model, dialect, base_url: elsewhere.url }), elsewhere.variable);
  const mistaken = model.model_name!.includes('/') && base_url === undefined && model.dialect === undefined;
  return mistaken ? unknownPrefix(model.model_name!) : withParameters(model);
}

/** Only a variable that nobody named is replaced. */
function keyVariable(model: ModelConfig, provider: Provider, env: SettleOptions['env']): string {
  if (model.api_key_env !== OPENAI.keys[0] || provider === OPENAI) return model.api_key_env;
  return provider.keys.find((name) => env[name]) ?? provider.keys[0]!;
}

const unknownPrefix = (name: string): Settled => ({
  ok: false,
  message: `no provider is known by the prefix of "${name}"${didYouMean({ model_name: name, base_url: undefined, prices: undefined })}`,
  fix: `write one of ${PROVIDERS.map(({ prefix }) => `${prefix}/`).join(', ')} in front (OpenRouter serves openrouter/${name}), or set model.base_url or $OPENAI_BASE_URL for another OpenAI-compatible server`,
});

/** Only marks say how long: Messages has its own, chat those that are asked for. */
function cacheWarnings(model: ModelConfig): string[] {
  const dialect = namedModel(model).dialect;
  const { cacheMarks } = DIALECTS[dialect];
  const marks = cacheMarks === 'own' || (cacheMarks === 'asked' && model.set_cache_control !== null);
  if (model.cache_ttl === undefined || marks) return [];
  const why =
    cacheMarks === 'asked'
      ? 'no mark is set; add model.set_cache_control: default_end'
      : `${dialect} has no marks`;
  return [`model.cache_ttl: ${model.cache_ttl} has no effect, because ${why}`];
}

/** All problems at once, with what to do about each. */
function withParameters(settled: ModelConfig): Settled {
  const { model, refused, warnings: found } = checkedParameters(settled);
  const [first, ...others] = refused;
  const warnings = [...found, ...cacheWarnings(settled)];
  if (!first) return { ok: true, model, ...(warnings.length > 0 ? { warnings } : {}) };
  return {
    ok: false,
    message: refused.map(({ parameter, why }) => `model.model_kwargs.${parameter}: ${why}`).join('; '),
    fix: [first, ...others].map(({ parameter, fix }) => `${parameter}: ${fix}`).join('; '),
  };
}

export function settleModel(model: ModelConfig, options: SettleOptions): Settled {
  const name = model.model_name;
  if (!name || isFreeName(name) || model.model_class !== 'openai') return { ok: true, model };
  const named = namedModel(model);
  return named.provider
    ? settleNamed(model, named, named.provider, options)
    : settleUnnamed(model, options.env);
}

function settleNamed(
  model: ModelConfig,
  named: NamedModel,
  provider: Provider,
  { env, litellm }: SettleOptions,
): Settled {
  if (provider.cloud) {
    const answer = settleCloud(provider.cloud, { model, named, env, litellm });
    if (!answer.ok) return answer;
    const variable = model.base_url === undefined ? addressOf(provider, env)?.variable : undefined;
    return from(
      withParameters({ ...answer.model, api_key_env: keyVariable(model, provider, env) }),
      variable,
    );
  }
  const elsewhere = model.base_url === undefined ? addressOf(provider, env) : undefined;
  if (provider.baseUrl === null && model.base_url === undefined && elsewhere === undefined)
    return {
      ok: false,
      message: `"${model.model_name}" is on a server of your own`,
      fix: `set model.base_url, or ${provider.baseUrls.map((variable) => `$${variable}`).join(' or ')}`,
    };
  const openai = provider === OPENAI && model.base_url === undefined && (litellm || elsewhere !== undefined);
  const dialect = model.dialect ?? (openai ? OPENAI.dialect : named.dialect);
  // The dialect that the name alone says is not written down, so that the hashes of earlier runs stay.
  const open =
    model.dialect === undefined &&
    elsewhere === undefined &&
    dialect === OPENAI.dialect &&
    named.dialect === dialect;
  const settled = withParameters({
    ...model,
    ...(open ? {} : { dialect }),
    ...(elsewhere === undefined ? {} : { base_url: elsewhere.url }),
    api_key_env: keyVariable(model, provider, env),
  });
  return from(settled, elsewhere?.variable);
}
