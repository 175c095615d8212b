/** The meaning of a model's name, found without any request: dialect, address, key, prices, context and longest answer. */
import { cloudOf, missingPackages } from '../../model/clouds/chooseCloud.ts';
import { knownModel } from '../../model/knownModels.ts';
import { modelConfigSchema } from '../../model/modelConfig.ts';
import { namedModel, PROVIDERS } from '../../model/names.ts';
import { likelyModel, priceSource } from '../../model/prices.ts';
import { settleModel } from '../../model/settleModel.ts';
import { type Variables, variable } from '../caller.ts';
import { pricesOfModel } from '../record/tokenPrices.ts';

export type ModelMeaning = Extract<Awaited<ReturnType<typeof modelMeaning>>, { ok: true }>['meaning'];

/** Only checks whether keys are set in `env`; never returns a value. */
export async function modelMeaning(name: string, env: Variables, at: Date) {
  const given = modelConfigSchema.parse({ model_name: name });
  const settled = settleModel(given, { env, litellm: false });
  if (!settled.ok) return settled;
  const { model } = settled;
  const { provider } = namedModel(given);
  const { dialect, sentAs, address } = namedModel(model);
  const known = knownModel(name);
  const cloud = await cloudOf(model);
  const prices = pricesOfModel(model, name, at);
  return {
    ok: true as const,
    meaning: {
      name,
      provider: provider?.prefix ?? null,
      dialect,
      sent_as: sentAs,
      base_url: address,
      /** The variable that names the address; null where the name does. */
      base_url_from: settled.addressFrom ?? null,
      key: model.api_key_env,
      key_set: variable(env, model.api_key_env) !== undefined,
      /** The credentials of a cloud, where no key is set. */
      credentials: cloud && {
        from: cloud.source,
        packages: cloud.packages,
        installed: (await missingPackages(model)) === null,
      },
      /** Dollars per million tokens; null where no price is known. */
      prices: prices === 'free' ? null : prices,
      price_source: priceSource(model, at),
      /** The name that was most likely meant; null where this one is known, or may well be right. */
      did_you_mean: prices && provider ? null : likelyModel(given),
      /** Tokens; null where the table does not have the model. */
      context: known?.context ?? null,
      max_output: known?.output ?? null,
      /** The day after which its maker serves it no longer. */
      gone: known?.gone ?? null,
    },
  };
}

export const providerFacts = (env: Variables) =>
  PROVIDERS.map(({ prefix, dialect, keys, baseUrl, baseUrls }) => ({
    prefix,
    dialect: prefix === 'openai' ? 'responses or chat' : dialect,
    keys,
    keys_set: keys.filter((key) => variable(env, key) !== undefined),
    base_url: baseUrl,
    base_url_variables: baseUrls,
  }));
