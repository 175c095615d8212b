/**
 * Sums numbers of a provider or a file. A sum of integers fails once it passes 2^63, so one absurd row would break the whole query. A sum of
 * reals is as exact as a JavaScript number.
 */
export const safeSum = (expression: string): string => `sum(CAST(${expression} AS REAL))`;

export const TOKENS = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'].map(
  (kind) => `${kind}_tokens`,
);

/** Hides the view of the same name, which sums integers. */
export const ATTEMPT_COSTS = `CREATE TEMP VIEW attempt_costs AS
  SELECT attempt_id, count(*) AS calls, ${safeSum('cost_nano')} AS cost_nano,
    sum(state <> 'in_flight' AND cost_nano IS NULL) AS unknown_calls,
    ${TOKENS.map((column) => `${safeSum(column)} AS ${column}`).join(', ')}
  FROM main.model_calls GROUP BY attempt_id`;
