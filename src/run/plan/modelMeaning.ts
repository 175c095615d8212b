/** What a model's name means, found without any request: dialect, address, key, prices, context and longest answer. */
import { cloudOf, missingPackages } from '../../model/clouds/chooseCloud.ts';
import { knownModel } from '../../model/knownModels.ts';
import { modelConfigSchema } from '../../model/modelConfig.ts';
import { baseUrlOf, dialectNameOf, nameMeans, PROVIDERS, sentModel } from '../../model/names.ts';
import { priceSource } from '../../model/prices.ts';
import { settleModel } from '../../model/settleModel.ts';
import { type Variables, variable } from '../caller.ts';
import { pricesOfModel } from '../record/tokenPrices.ts';

export interface ModelMeaning {
  readonly name: string;
  readonly provider: string | null;
  readonly dialect: string;
  readonly sent_as: string;
  readonly base_url: string | null;
  /** The variable that names the address; null where the name does. */
  readonly base_url_from: string | null;
  readonly key: string;
  readonly key_set: boolean;
  /** Of a cloud: what it is asked with where no key is set. */
  readonly credentials: {
    readonly from: string;
    readonly packages: readonly string[];
    readonly installed: boolean;
  } | null;
  /** Dollars per million tokens; null where no price is known. */
  readonly prices: {
    readonly input: number;
    readonly output: number;
    readonly cache_read?: number | undefined;
  } | null;
  readonly price_source: string | null;
  /** Tokens; null where the table does not have the model. */
  readonly context: number | null;
  readonly max_output: number | null;
  /** The day after which its maker serves it no longer. */
  readonly gone: string | null;
}

export type Meaning =
  | { readonly ok: true; readonly meaning: ModelMeaning }
  | { readonly ok: false; readonly message: string; readonly fix: string };

/** Only checks whether keys are set in `env`; never returns a value. */
export async function modelMeaning(name: string, env: Variables, at: Date): Promise<Meaning> {
  const given = modelConfigSchema.parse({ model_name: name });
  const settled = settleModel(given, { env, litellm: false });
  if (!settled.ok) return settled;
  const { model } = settled;
  const known = knownModel(name);
  const cloud = cloudOf(model);
  const prices = pricesOfModel(model, name, at);
  return {
    ok: true,
    meaning: {
      name,
      provider: nameMeans(given)?.provider.prefix ?? null,
      dialect: dialectNameOf(model),
      sent_as: sentModel(model),
      base_url: baseUrlOf(model),
      base_url_from: settled.addressFrom ?? null,
      key: model.api_key_env,
      key_set: variable(env, model.api_key_env) !== undefined,
      credentials: cloud && {
        from: cloud.source,
        packages: cloud.packages,
        installed: (await missingPackages(model)) === null,
      },
      prices: prices === 'free' ? null : prices,
      price_source: priceSource(model, at),
      context: known?.context ?? null,
      max_output: known?.output ?? null,
      gone: known?.gone ?? null,
    },
  };
}

export interface ProviderFacts {
  readonly prefix: string;
  readonly dialect: string;
  readonly keys: readonly string[];
  readonly keys_set: readonly string[];
  readonly base_url: string | null;
  readonly base_url_variables: readonly string[];
}

export const providerFacts = (env: Variables): ProviderFacts[] =>
  PROVIDERS.map(({ prefix, dialect, keys, baseUrl, baseUrls }) => ({
    prefix,
    dialect: prefix === 'openai' ? 'responses or chat' : dialect,
    keys,
    keys_set: keys.filter((key) => variable(env, key) !== undefined),
    base_url: baseUrl,
    base_url_variables: baseUrls,
  }));
