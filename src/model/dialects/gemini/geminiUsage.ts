/** Gemini's usageMetadata as token counts by kind: what is cached is inside the prompt, what is thought is beside the answer. */
import { z } from 'zod';
import { tokenCount as count } from '../../../base/plausible.ts';
import type { ReadUsage } from '../dialect.ts';
import { firstIssue } from '../shapes.ts';

const schema = z.looseObject({
  promptTokenCount: count.nullish(),
  toolUsePromptTokenCount: count.nullish(),
  cachedContentTokenCount: count.nullish(),
  candidatesTokenCount: count.nullish(),
  thoughtsTokenCount: count.nullish(),
});

const unusable = (why: string): ReadUsage => ({ usage: null, cacheWrite1h: 0, notes: [why] });

/** `raw` is whatever stood under `usageMetadata`. Never throws. */
export function readUsageMetadata(raw: unknown): ReadUsage {
  if (raw === null || raw === undefined) return unusable('usage missing');
  const parsed = schema.safeParse(raw);
  if (!parsed.success) return unusable(`usage unusable: ${firstIssue(parsed.error)}`);
  const {
    promptTokenCount: prompt,
    cachedContentTokenCount: cached,
    thoughtsTokenCount: thoughts,
  } = parsed.data;
  if (prompt === null || prompt === undefined) return unusable('usage missing: no token counts in it');
  const cacheRead = cached ?? 0;
  const input = prompt + (parsed.data.toolUsePromptTokenCount ?? 0) - cacheRead;
  if (input < 0) return unusable(`usage unusable: ${cacheRead} read from a cache of ${prompt} in`);
  const reasoning = thoughts ?? 0;
  const output = (parsed.data.candidatesTokenCount ?? 0) + reasoning;
  return { usage: { input, cacheRead, cacheWrite: 0, output, reasoning }, cacheWrite1h: 0, notes: [] };
}
