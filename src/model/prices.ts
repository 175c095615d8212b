/**
 * The cost of a call, in whole nano-dollars: the price in the config, else what the provider itself states, else the dated
 * table of genai-prices. Unknown is null and never 0.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { PriceCalculation } from '@pydantic/genai-prices';
import { tokensOrNull } from '../base/plausible.ts';
import { closest } from '../base/text/closest.ts';
import { type NanoDollars, nanoOrNull, plausibleNano } from '../money.ts';
import { readUsage } from './dialects/completion.ts';
import type { ReadUsage } from './dialects/dialect.ts';
import type { Usage } from './model.ts';
import type { ModelConfig, Prices } from './modelConfig.ts';
import { isMaker, namedModel, PROVIDERS } from './names.ts';

const require = createRequire(import.meta.url);
type PriceTable = typeof import('@pydantic/genai-prices');

/** Loaded when the first price is asked for: it takes 40 ms and 20 MB, which scripted and replayed runs need not pay. */
let table: (Pick<PriceTable, 'calcPrice' | 'findProvider'> & { readonly version: string }) | undefined;
function priceTable() {
  if (table) return table;
  const { calcPrice, findProvider } = require('@pydantic/genai-prices') as PriceTable;
  const home = dirname(require.resolve('@pydantic/genai-prices'));
  const { version } = JSON.parse(readFileSync(join(home, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  table = { calcPrice, findProvider, version: `genai-prices@${version}` };
  return table;
}

type PricedConfig = Pick<ModelConfig, 'model_name' | 'base_url' | 'prices'>;

interface Pricing {
  readonly nano: NanoDollars | null;
  readonly version: string | null;
}

const NO_PRICE: Pricing = { nano: null, version: null };

/** A dollar per million tokens is a million pico-dollars per token: in these, prices are whole numbers and sums exact. */
const PICO = 1_000_000;

/** Rounded once, at the end. */
function byRates(prices: Prices, usage: Usage, write1h: number): NanoDollars | null {
  const kinds: readonly (readonly [tokens: number, rate: number])[] = [
    [usage.input, prices.input],
    [usage.cacheRead, prices.cache_read ?? prices.input],
    [usage.cacheWrite - write1h, prices.cache_write ?? prices.input],
    [write1h, prices.cache_write_1h ?? 2 * prices.input],
    [usage.output, prices.output],
  ];
  const pico = kinds.reduce((sum, [tokens, rate]) => sum + tokens * Math.round(rate * PICO), 0);
  return nanoOrNull(Math.round(pico / 1000));
}

/** Stands for the rates in the ledger, so that a cost can be computed again. */
function ratesVersion(prices: Prices): string {
  const rates = Object.entries(prices).map(([kind, rate]) => `${kind} ${rate}`);
  return `config: ${rates.join(', ')}`;
}

function atProvider({
  model_name,
  base_url,
}: PricedConfig): { readonly id: string; readonly model: string } | null {
  const { provider, model } = namedModel({ model_name, base_url, dialect: undefined });
  return provider && { id: provider.pricedAs ?? provider.prefix, model };
}

/** The table's row with the price of a model, and the name that found it there. */
interface PricedRow {
  readonly name: string;
  readonly provider: PriceCalculation['provider'];
  readonly version: string;
  readonly rates: PlainRates | null;
}

/** Dollars per million tokens, the same at any time and for any length. */
type PlainRates = Readonly<Record<string, number>>;

/** Most rows are plain and added up here: the table checks a row again at each call, which takes longer than all that is written of a call. */
function plainRates({ prices }: PriceCalculation['model']): PlainRates | null {
  const plain =
    !Array.isArray(prices) &&
    !('requests_kcount' in prices) &&
    Object.values(prices).every((rate) => typeof rate === 'number');
  return plain ? (prices as PlainRates) : null;
}

/** As the table does it, kind by kind in the order of its row, so that no last bit differs. Tokens without a rate of their own are input. */
function byPlainRates(rates: PlainRates, usage: Usage): number {
  const apart = { cache_read_mtok: usage.cacheRead, cache_write_mtok: usage.cacheWrite };
  let plainInput = usage.input;
  for (const [kind, tokens] of Object.entries(apart)) if (!(kind in rates)) plainInput += tokens;
  const tokens: PlainRates = { ...apart, input_mtok: plainInput };
  let input = 0;
  for (const [kind, rate] of Object.entries(rates)) input += (rate * (tokens[kind] ?? 0)) / 1e6;
  return input + ((rates.output_mtok ?? 0) * usage.output) / 1e6;
}

/** To find a model costs more than to price a call: the table has a thousand of them. */
const rows = new Map<string, PricedRow | null>();

/** A name as routers write it, `provider/model`, is tried with and without its first part. */
function rowOf(config: PricedConfig, counts: Record<string, number>, at: Date): PricedRow | null {
  const { calcPrice, version } = priceTable();
  const name = config.model_name ?? '';
  const slash = name.indexOf('/');
  const named = atProvider(config);
  const tries: readonly { name: string; where: object }[] = [
    { name, where: config.base_url ? { providerApiUrl: config.base_url } : {} },
    { name, where: {} },
    ...(slash > 0 ? [{ name: name.slice(slash + 1), where: { providerId: name.slice(0, slash) } }] : []),
    ...(named ? [{ name: named.model, where: { providerId: named.id } }] : []),
  ];
  for (const asked of tries) {
    try {
      const price = calcPrice(counts, asked.name, { ...asked.where, timestamp: at });
      if (price)
        return {
          name: asked.name,
          provider: { ...price.provider, models: [price.model] },
          version: `${version} ${price.provider.id}/${price.model.id}`,
          rates: plainRates(price.model),
        };
    } catch {
      // Counts that the table refuses (an unknown kind for this model) have no price.
    }
  }
  return null;
}

function byTable(config: PricedConfig, usage: Usage, write1h: number, at: Date): Pricing {
  const counts: Record<string, number> = {
    input_tokens: usage.input + usage.cacheRead + usage.cacheWrite,
    cache_read_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    output_tokens: usage.output,
    ...(write1h > 0 ? { cache_write_1h_tokens: write1h } : {}),
  };
  // Which kinds of tokens there are decides whether a row has a price for all of them.
  const kinds = Object.keys(counts).filter((kind) => counts[kind] !== 0);
  const key = [config.model_name, config.base_url, ...kinds].join('\0');
  let row = rows.get(key);
  if (row === undefined) {
    row = rowOf(config, counts, at);
    rows.set(key, row);
  }
  if (!row) return NO_PRICE;
  const { rates, name, provider, version } = row;
  const dollars =
    rates && write1h === 0
      ? byPlainRates(rates, usage)
      : priceTable().calcPrice(counts, name, { provider, timestamp: at })?.total_price;
  return dollars === undefined ? NO_PRICE : { nano: plausibleNano(dollars), version };
}

export interface CostOfCall {
  readonly usage: Usage | null;
  readonly costNano: NanoDollars | null;
  /** The cost as the provider states it. */
  readonly providerCostNano: NanoDollars | null;
  readonly priceVersion: string | null;
  readonly notes: readonly string[];
}

/** OpenRouter's `usage.cost`; with a key of one's own the provider's part is stated apart. */
function statedCost(raw: unknown): {
  readonly stated: NanoDollars | null;
  readonly notes: readonly string[];
} {
  const usage = raw as {
    cost?: unknown;
    is_byok?: unknown;
    cost_details?: { upstream_inference_cost?: unknown };
  } | null;
  const cost = usage?.cost;
  if (typeof cost !== 'number') return { stated: null, notes: [] };
  const upstream = usage?.is_byok === true ? usage.cost_details?.upstream_inference_cost : 0;
  // A sum would hide a negative part.
  const stated =
    cost < 0 ? null : plausibleNano(cost + (typeof upstream === 'number' && upstream > 0 ? upstream : 0));
  return { stated, notes: stated === null ? [`usage.cost is not a cost: ${cost}`] : [] };
}

/** More than this between the provider's figure and the table's is worth a note. */
const TOLERATED_DIFFERENCE = 0.02;

function noteOnDifference(stated: NanoDollars, computed: Pricing): string[] {
  if (computed.nano === null || Math.abs(stated - computed.nano) <= TOLERATED_DIFFERENCE * stated) return [];
  return [`provider states ${stated} nano-dollars, ${computed.version} gives ${computed.nano}`];
}

/** `read` is the dialect's reading of `rawUsage`; without it the form tells. */
export function costOf(
  config: PricedConfig,
  rawUsage: unknown,
  at: Date,
  read: ReadUsage = readUsage(rawUsage),
): CostOfCall {
  const { stated, notes: odd } = statedCost(rawUsage);
  const { usage, cacheWrite1h } = read;
  const notes = [...read.notes, ...odd];
  const done = (pricing: Pricing): CostOfCall => ({
    usage,
    costNano: pricing.nano,
    providerCostNano: stated,
    priceVersion: pricing.version,
    notes,
  });
  if (config.prices === 'free') return done({ nano: 0, version: 'config: free' });
  if (config.prices && usage) {
    const nano = byRates(config.prices, usage, cacheWrite1h);
    if (nano === null) notes.push('cost unknown: the prices of the configuration give no cost that can be');
    return done({ nano, version: ratesVersion(config.prices) });
  }
  const computed = usage && !config.prices ? byTable(config, usage, cacheWrite1h, at) : NO_PRICE;
  // Proxies state 0 of a model without a price, and until their books are done: no cost, unless the name says that nothing is paid.
  if (stated !== null && (stated > 0 || config.model_name?.endsWith(':free'))) {
    notes.push(...noteOnDifference(stated, computed));
    return done({ nano: stated, version: 'provider' });
  }
  if (computed.nano === null && stated === 0) notes.push('usage.cost of 0 counted as unknown');
  if (computed.nano === null && usage) notes.push(`no price known for ${config.model_name ?? 'the model'}`);
  return done(computed);
}

const SAMPLE: Usage = { input: 1000, cacheRead: 0, cacheWrite: 0, output: 1000, reasoning: 0 };

/** For preflight: would a call have a price? With a cost limit set, a paid model without one is refused before anything starts (T-20). */
export function priceKnown(config: PricedConfig & Pick<ModelConfig, 'model_class'>): boolean {
  if (config.prices !== undefined || isFreeName(config.model_name)) return true;
  return byTable(config, SAMPLE, 0, new Date()).nano !== null;
}

/** Names of providers, by the prefix that means them: its own, and the table's word for it. */
const WRITTEN: readonly (readonly [written: string, prefix: string])[] = PROVIDERS.flatMap(
  ({ prefix, pricedAs }) => [[prefix, prefix] as const, ...(pricedAs ? [[pricedAs, prefix] as const] : [])],
);

const modelsOf = (id: string): readonly string[] =>
  priceTable()
    .findProvider({ providerId: id })
    ?.models.map((model) => model.id) ?? [];

/** Another number is another model, of which the table may not know yet. */
const numbers = (text: string) => text.replace(/\D/g, '');
const sortedWords = (text: string) =>
  text
    .split(/[^a-z0-9]/)
    .sort()
    .join(' ');
function closestModel(name: string, ids: readonly string[]): string | null {
  const lower = name.toLowerCase();
  const alike = ids.filter((id) => numbers(id) === numbers(lower));
  const swapped = alike.find((id) => sortedWords(id) === sortedWords(lower));
  return swapped ?? closest(lower, alike);
}

/** A likely name behind the prefix of a provider, or of the maker whose model's bare name it is. */
function likelyBare(name: string): string | null {
  const [makers, others] = [
    PROVIDERS.filter(isMaker),
    PROVIDERS.filter((one) => !isMaker(one) && !one.cloud),
  ];
  for (const group of [makers, others]) {
    const found = group.flatMap(({ prefix, pricedAs = prefix }) => {
      const id = closestModel(name, modelsOf(pricedAs));
      return id === null ? [] : [{ id, written: group === makers ? id : `${prefix}/${id}` }];
    });
    const best = closestModel(
      name,
      found.map(({ id }) => id),
    );
    const meant = found.find(({ id }) => id === best);
    if (meant) return meant.written;
  }
  return null;
}

function likelyPrefix(prefix: string): string | null {
  const exact = WRITTEN.find(([written]) => written === prefix);
  const longer = PROVIDERS.find((one) => prefix.length > 3 && one.prefix.startsWith(prefix));
  if (exact || longer) return exact?.[1] ?? longer!.prefix;
  const close = closest(
    prefix,
    WRITTEN.map(([written]) => written),
  );
  return WRITTEN.find(([written]) => written === close)?.[1] ?? null;
}

/** The name that a misspelt one most likely means, as it would be written; null for a name that may well be right, as on a server of one's own. */
export function likelyModel(config: PricedConfig): string | null {
  const name = config.model_name ?? '';
  const named = atProvider(config);
  const [, free, rest] = /^(\w{1,20}):(.+)$/s.exec(name) ?? [];
  if (!named && free !== undefined && !name.includes('/') && !isFreeName(name)) {
    const kind = closest(free, ['scripted', 'replay']);
    if (kind) return `${kind}:${rest}`;
  }
  if (named) {
    if (!name.endsWith(named.model)) return null;
    const close = closestModel(named.model, modelsOf(named.id));
    return close === null || close === named.model
      ? null
      : `${name.slice(0, name.length - named.model.length)}${close}`;
  }
  if (config.base_url !== undefined) return null;
  const slash = name.indexOf('/');
  if (slash < 0) return likelyBare(name);
  const prefix = likelyPrefix(name.slice(0, slash).toLowerCase());
  if (prefix === null) return null;
  const whole = `${prefix}${name.slice(slash)}`;
  return priceKnown({ ...config, model_name: whole, model_class: 'openai' })
    ? whole
    : (likelyModel({ ...config, model_name: whole }) ?? whole);
}

/** The hint behind a sentence about a model; '' where nothing is likely. */
export function didYouMean(config: PricedConfig): string {
  const meant = likelyModel(config);
  return meant === null || meant === config.model_name ? '' : ` (did you mean ${meant}?)`;
}

/** The source of a model's price, before any call: the rates of the configuration, the table with its version and row, or nowhere. */
export function priceSource(config: PricedConfig, at: Date): string | null {
  if (isFreeName(config.model_name)) return 'nothing is paid';
  if (config.prices === 'free') return 'config: free';
  if (config.prices) return ratesVersion(config.prices);
  return byTable(config, SAMPLE, 0, at).version;
}

export const isFreeName = (name: string | undefined): boolean =>
  name !== undefined && /^(scripted|replay|none):/.test(name);

export const NO_PRICE_FIX =
  'add prices: {input: …, output: …} in dollars per million tokens under model (or prices: free), or --cost-limit none with -c agent.cost_limit=none';

/** English and code take 3 to 4 bytes a token; the lower figure, since an estimate that reserves money should rather be high. */
const BYTES_PER_TOKEN = 3;
/** Tokens that a step writes at most in practice, where the config sets no limit of its own. */
export const USUAL_MAX_OUTPUT = 2048;

/** Tokens that a call may use in all, for a limit of tokens. */
export const estimatedTokens = (requestBytes: number, maxOutputTokens: number | null): number =>
  Math.ceil(requestBytes / BYTES_PER_TOKEN) + (tokensOrNull(maxOutputTokens) ?? USUAL_MAX_OUTPUT);

/**
 * The highest cost of a call, for the reservation before it: the request at the price of uncached input and the longest answer. null when no
 * price is known.
 */
export function estimateNano(
  config: PricedConfig,
  requestBytes: number,
  maxOutputTokens: number | null,
  at: Date,
): NanoDollars | null {
  const usage: Usage = {
    ...SAMPLE,
    input: Math.ceil(requestBytes / BYTES_PER_TOKEN),
    output: tokensOrNull(maxOutputTokens) ?? USUAL_MAX_OUTPUT,
  };
  if (config.prices === 'free') return 0;
  if (config.prices) return byRates(config.prices, usage, 0);
  return byTable(config, usage, 0, at).nano;
}
