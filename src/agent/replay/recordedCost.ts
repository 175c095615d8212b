/** What a recorded reply cost: what the provider says it charged, else the dated row of its model. */

import { z } from 'zod';
import { recordOf } from '../../base/isRecord.ts';
import { timestampOrNull } from '../../base/plausible.ts';
import { pricesSchema } from '../../model/modelConfig.ts';
import { costOf, isFreeName } from '../../model/prices.ts';
import { type NanoDollars, nanoOrNull, plausibleNano } from '../../money.ts';

interface PriceRow {
  /** The day from which the row holds; newest first. */
  readonly since: string;
  /** Dollars per million tokens. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** Rows for published recordings whose replies carry no cost. */
const ROWS: Readonly<Record<string, readonly PriceRow[]>> = {
  'google/gemini-3-pro-preview': [{ since: '2025-11-18', input: 2, cached: 0.125, output: 12 }],
};

const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);

/**
 * `stated` is what format 1.1 keeps beside a reply: the agent's own count, where there is no row. Without that the prices that a run of
 * ours had in its configuration, and the table that runs go by. null when nobody knows.
 */
export function recordedCost(
  response: unknown,
  model: Readonly<Record<string, unknown>>,
  stated?: unknown,
): NanoDollars | null {
  const modelName = String(model.model_name ?? '');
  const usage = recordOf(recordOf(response).usage);
  if (typeof usage.cost === 'number') return plausibleNano(typeof stated === 'number' ? stated : usage.cost);
  const at = new Date((timestampOrNull(recordOf(response).created) ?? 0) * 1000);
  const created = at.toISOString().slice(0, 10);
  const row = ROWS[modelName.replace(/^@/, '')]?.find(({ since }) => since <= created);
  if (!row || typeof usage.prompt_tokens !== 'number') {
    if (typeof stated === 'number') return plausibleNano(stated);
    if (isFreeName(modelName)) return 0;
    const prices = z.union([pricesSchema, z.literal('free')]).safeParse(model.prices);
    const config = { model_name: modelName, ...(prices.success ? { prices: prices.data } : {}) };
    return response === null || response === undefined
      ? null
      : costOf(config, recordOf(response).usage, at).costNano;
  }
  const cached = number(recordOf(usage.prompt_tokens_details).cached_tokens);
  const fresh = number(usage.prompt_tokens) - cached;
  // Dollars per million tokens are thousandths of nano-dollars per token times a million: multiply first, so that it stays exact.
  return nanoOrNull(
    Math.round(
      (fresh * row.input + cached * row.cached + number(usage.completion_tokens) * row.output) * 1000,
    ),
  );
}
