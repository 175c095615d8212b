/** A provider's `usage` object as token counts by kind. Providers count differently and wrongly; counts that do not add up are discarded (T-19). */
import { z } from 'zod';
import { tokenCount as count } from '../../base/plausible.ts';
import type { ReadUsage } from './dialect.ts';

const details = z.looseObject({}).nullish();

const usageSchema = z.looseObject({
  prompt_tokens: count.nullish(),
  completion_tokens: count.nullish(),
  input_tokens: count.nullish(),
  output_tokens: count.nullish(),
  total_tokens: count.nullish(),
  prompt_tokens_details: details,
  input_tokens_details: details,
  completion_tokens_details: details,
  output_tokens_details: details,
  cache_read_input_tokens: count.nullish(),
  cache_creation_input_tokens: count.nullish(),
  cache_creation: details,
  prompt_cache_hit_tokens: count.nullish(),
  cached_tokens: count.nullish(),
  reasoning_tokens: count.nullish(),
});

const unusable = (why: string): ReadUsage => ({ usage: null, cacheWrite1h: 0, notes: [why] });

function detail(from: Record<string, unknown> | null | undefined, name: string): number | null {
  const value = from?.[name];
  if (value === null || value === undefined) return null;
  return count.parse(value);
}

function read(raw: z.output<typeof usageSchema>): ReadUsage {
  const openAi = raw.prompt_tokens !== undefined && raw.prompt_tokens !== null;
  const prompt = openAi ? raw.prompt_tokens : raw.input_tokens;
  const completion = raw.completion_tokens ?? raw.output_tokens;
  if (prompt === null || prompt === undefined || completion === null || completion === undefined)
    return unusable('usage missing: no token counts in it');
  const inDetails = raw.prompt_tokens_details ?? raw.input_tokens_details;
  const cacheRead =
    detail(inDetails, 'cached_tokens') ??
    raw.cache_read_input_tokens ??
    raw.prompt_cache_hit_tokens ??
    raw.cached_tokens ??
    0;
  const write1h = detail(raw.cache_creation, 'ephemeral_1h_input_tokens') ?? 0;
  const write5m = detail(raw.cache_creation, 'ephemeral_5m_input_tokens') ?? 0;
  const cacheWrite =
    raw.cache_creation_input_tokens ??
    detail(inDetails, 'cache_write_tokens') ??
    detail(inDetails, 'cache_creation_tokens') ??
    write1h + write5m;
  if (write1h > cacheWrite)
    return unusable(`usage unusable: ${write1h} one-hour cache writes of ${cacheWrite}`);
  // Anthropic's own form counts cached tokens beside input_tokens, everyone else's inside the prompt.
  const beside = !openAi && !raw.input_tokens_details && raw.total_tokens === undefined;
  const input = beside ? prompt : prompt - cacheRead - cacheWrite;
  if (input < 0)
    return unusable(
      `usage unusable: ${cacheRead} read from and ${cacheWrite} written to a cache of ${prompt} in`,
    );
  const outDetails = raw.completion_tokens_details ?? raw.output_tokens_details;
  const reasoning = detail(outDetails, 'reasoning_tokens') ?? raw.reasoning_tokens ?? 0;
  // xAI counts reasoning beside the completion; the total gives it away.
  const apart = reasoning > 0 && raw.total_tokens === prompt + completion + reasoning;
  const output = apart ? completion + reasoning : completion;
  if (reasoning > output) return unusable(`usage unusable: ${reasoning} reasoning tokens of ${output} out`);
  return { usage: { input, cacheRead, cacheWrite, output, reasoning }, cacheWrite1h: write1h, notes: [] };
}

/** `raw` is whatever stood under `usage`. Never throws. */
export function readUsage(raw: unknown): ReadUsage {
  if (raw === null || raw === undefined) return unusable('usage missing');
  const parsed = usageSchema.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return unusable(
      `usage unusable: ${issue?.path.join('.') || 'it'} is ${issue?.message ?? 'of no known form'}`,
    );
  }
  try {
    return read(parsed.data);
  } catch {
    return unusable('usage unusable: a detail is not a count');
  }
}
