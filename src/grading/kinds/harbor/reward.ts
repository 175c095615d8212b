/** The reward that a verifier wrote: reward.json before reward.txt, as Harbor reads them. Pure. */
import { isRecord } from '../../../base/isRecord.ts';

export interface Reward {
  /** Between 0 and 1. */
  readonly reward: number;
  /** Everything that was written, by name. */
  readonly rewards: Readonly<Record<string, number>>;
}
export type ReadReward =
  | { readonly ok: true; readonly found: Reward }
  | { readonly ok: false; readonly message: string };

const MAIN = 'reward';

const no = (message: string): ReadReward => ({ ok: false, message });
const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 80) ?? 'nothing';
const inRange = (value: number): boolean => value >= 0 && value <= 1;

/** The one called "reward" counts, else the only one, else the mean of all. Others may be counts of anything. */
export function mainOf(rewards: Readonly<Record<string, number>>): ReadReward {
  const named = Object.hasOwn(rewards, MAIN) ? { [MAIN]: rewards[MAIN]! } : rewards;
  const bad = Object.entries(named).find(([, value]) => !inRange(value));
  if (bad) return no(`the reward "${bad[0]}" is ${bad[1]}, which is not between 0 and 1`);
  const values = Object.values(named);
  return {
    ok: true,
    found: { reward: values.reduce((sum, value) => sum + value, 0) / values.length, rewards },
  };
}

/** Python writes NaN and Infinity, which are no JSON: they are refused as what they are. */
export function rewardFromJson(text: string): ReadReward {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return no(`reward.json is not JSON: ${shown(text)}`);
  }
  const entries = isRecord(parsed) ? Object.entries(parsed) : [[MAIN, parsed] as const];
  if (entries.length === 0) return no('reward.json names no reward');
  const rewards: Record<string, number> = Object.create(null) as Record<string, number>;
  for (const [name, value] of entries) {
    // True and false are numbers to Python.
    const number = typeof value === 'boolean' ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isFinite(number))
      return no(`the reward ${shown(name)} of reward.json is ${shown(value)}, which is not a number`);
    rewards[name] = number;
  }
  return mainOf({ ...rewards });
}

/** No other spellings of numbers, such as 0x1. */
const NUMBER = /^[\d.eE+-]+$/;

export function rewardFromText(text: string): ReadReward {
  const trimmed = text.trim();
  if (trimmed === '') return no('reward.txt is empty');
  const value = NUMBER.test(trimmed) ? Number(trimmed) : Number.NaN;
  if (!Number.isFinite(value)) return no(`reward.txt holds ${shown(trimmed)}, which is not a number`);
  return mainOf({ [MAIN]: value });
}
