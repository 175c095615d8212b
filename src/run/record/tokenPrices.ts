/** Dollars per million tokens of a model, from one query of the price module for each kind of token. */
import type { Usage } from '../../model/model.ts';
import { costOf, isFreeName } from '../../model/prices.ts';
import type { PricesOf, TokenPrices } from '../../report/measure/accounting.ts';
import type { RunData } from '../../store/records/runData.ts';

/** Small enough for the lowest tier of providers that charge long requests more. */
const SAMPLE = 1000;
const NO_TOKENS: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** Prices at the time of the run. */
export function pricesOfRun({ arms, run }: Pick<RunData, 'arms' | 'run'>): PricesOf {
  const at = new Date(run.createdAt);
  const known = new Map<string, TokenPrices | 'free' | null>();
  return (model, armName) => {
    const arm = arms.find((a) => a.name === armName);
    const config = (arm?.config.model ?? {}) as Parameters<typeof costOf>[0];
    const key = `${armName}\0${model}`;
    if (!known.has(key)) known.set(key, pricesOfModel(config, model, at));
    return known.get(key)!;
  };
}

/** Prices of one model at a time. */
export function pricesOfModel(
  config: Parameters<typeof costOf>[0],
  model: string,
  at: Date,
): TokenPrices | 'free' | null {
  if (config.prices === 'free' || isFreeName(config.model_name) || isFreeName(model)) return 'free';
  const rate = (kind: Partial<Usage>, cacheWrite1h = 0): number | null => {
    const read = { usage: { ...NO_TOKENS, ...kind }, cacheWrite1h, notes: [] };
    const { costNano } = costOf({ ...config, model_name: config.model_name ?? model }, null, at, read);
    return costNano === null ? null : costNano / SAMPLE / 1000;
  };
  const input = rate({ input: SAMPLE });
  const output = rate({ output: SAMPLE });
  const read = rate({ cacheRead: SAMPLE });
  const write = rate({ cacheWrite: SAMPLE });
  const hour = rate({ cacheWrite: SAMPLE }, SAMPLE);
  if (input === null || output === null) return null;
  return {
    input,
    output,
    ...(read === null ? {} : { cache_read: read }),
    ...(write === null ? {} : { cache_write: write }),
    ...(hour === null ? {} : { cache_write_1h: hour }),
  };
}
