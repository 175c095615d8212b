/** The money of attempts, and sums of it. */
import type { ViewerQueries } from '../../store/records/viewerQueries.ts';
import type { MoneyDocument } from './documents.ts';

const NO_MONEY: MoneyDocument = {
  costNano: null,
  unknownCalls: 0,
  calls: 0,
  failedCalls: 0,
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
};
const COUNTS = Object.keys(NO_MONEY).filter((key) => key !== 'costNano') as Exclude<
  keyof MoneyDocument,
  'costNano'
>[];

export function addMoney(parts: Iterable<MoneyDocument>): MoneyDocument {
  const sum = { ...NO_MONEY };
  for (const part of parts) {
    if (part.costNano !== null) sum.costNano = (sum.costNano ?? 0) + part.costNano;
    for (const count of COUNTS) sum[count] += part[count];
  }
  return sum;
}

type Attempt = { readonly id: number; readonly state: string };

/** The ledger of an ended attempt never changes again, so each is summed once; that keeps a live table of 500 x 200 steps cheap. */
export interface Ledger {
  money(attempt: Attempt): MoneyDocument;
  phases(attempt: Attempt): { name: string; n: number; ms: number }[];
}

export const createLedger = (queries: ViewerQueries): Ledger => ({
  money: remember((id) => ({ ...NO_MONEY, ...queries.cost(id) })),
  phases: remember((id) => queries.phaseTotals(id)),
});

function remember<T>(read: (id: number) => T): (attempt: Attempt) => T {
  const ended = new Map<number, T>();
  return ({ id, state }) => {
    const known = ended.get(id);
    if (known !== undefined) return known;
    const fresh = read(id);
    if (state === 'ended') ended.set(id, fresh);
    return fresh;
  };
}
