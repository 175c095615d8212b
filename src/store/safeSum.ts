/**
 * Sums over numbers that a provider or a file stated. A sum of integers ends the query once it passes 2^63, so one absurd row would take the
 * whole run with it. A sum of reals is exact as far as a JavaScript number is.
 */
export const safeSum = (expression: string): string => `sum(CAST(${expression} AS REAL))`;

const TOKENS = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'].map((kind) => `${kind}_tokens`);

/** Stands in front of the view of the same name, also in a database of an earlier version that is only read. */
export const ATTEMPT_COSTS = `CREATE TEMP VIEW attempt_costs AS
  SELECT attempt_id, count(*) AS calls, ${safeSum('cost_nano')} AS cost_nano,
    sum(state <> 'in_flight' AND cost_nano IS NULL) AS unknown_calls,
    ${TOKENS.map((column) => `${safeSum(column)} AS ${column}`).join(', ')}
  FROM main.model_calls GROUP BY attempt_id`;
