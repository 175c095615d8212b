/** How long `Retry-After` asks to wait: seconds, or an HTTP date, which is 0 when it has passed. undefined for anything else. */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  const value = header?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  // Date.parse takes almost anything; an HTTP date starts with the name of a day.
  const at = /^(mon|tue|wed|thu|fri|sat|sun)/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
