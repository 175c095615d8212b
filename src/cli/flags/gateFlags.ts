/** Flags of a verdict, for `compare --gate` and `run --baseline`, and the policy that they say. */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { dollarsToNano } from '../../money.ts';
import type { GatePolicy } from '../../report/gate/rules.ts';
import { UserError } from '../../run/userError.ts';
import { filled, integer } from './checks.ts';
import { type Args, flags, kebab } from './verb.ts';

/** "2%", "2pp" or 0.02. */
const share = z
  .string()
  .transform((text, ctx) => {
    const match = /^\s*(\d*\.?\d+)\s*(%|pp)?\s*$/.exec(text);
    const value = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    ctx.addIssue({ code: 'custom', message: `"${text}" must be a share such as 2% or 0.02` });
    return z.NEVER;
  })
  .optional();

export const gateFlags = flags({
  minResolved: {
    type: 'string',
    check: share,
    describe: 'minimum share of valid instances resolved (40% or 0.4)',
  },
  maxDrop: {
    type: 'string',
    check: share,
    describe:
      'maximum drop over matched instances (2% or 0.02), instead of the tests; the verdict says how often chance exceeds it',
  },
  maxBroken: {
    type: 'number',
    check: integer(0),
    describe:
      'how many rocks may fail in every re-measurement; default 0. A rock was always resolved in many runs before',
  },
  mustPass: { type: 'string', describe: 'file with ids that must be resolved, one a line' },
  maxInfra: { type: 'string', check: share, describe: 'maximum share of trials lost to infrastructure' },
  maxCost: {
    type: 'number',
    check: z.number().min(0).optional(),
    describe: 'maximum cost of the run in dollars',
  },
  setChanges: {
    choices: ['allow', 'warn', 'fail'],
    bare: true,
    describe: 'what to do about instances that only one run has; default warn',
  },
});
export type GateArgs = Args<typeof gateFlags>;

/** The help of `run` lists these after the other limits. */
const { maxBroken, mustPass, setChanges, ...limits } = gateFlags;

export const nightFlags = flags({
  baseline: {
    type: 'string',
    check: filled,
    describe:
      'judge the run against this: "last" (newest comparable whose gate did not fail), a baseline\'s name, or a run',
  },
  remeasure: {
    type: 'number',
    check: integer(0),
    describe:
      'with --baseline: run what newly broke (and, where much did, what got fixed) again this many times before the verdict; default 3',
  },
  withoutBaseline: {
    choices: ['warn', 'fail'],
    bare: true,
    describe: 'what to do when no comparable run exists; default warn',
  },
  ...limits,
  maxBroken,
  mustPass,
  setChanges,
});
export type NightArgs = Args<typeof nightFlags>;

/** Before anything is paid: flags that judge nothing, and a list of ids that is not there. */
export function checkNight(args: NightArgs): void {
  const { baseline, ...others } = nightFlags;
  const idle = Object.keys(others).find((name) => args[name as keyof typeof others] !== undefined);
  if (args.baseline === undefined && idle !== undefined)
    throw new UserError(`--${kebab(idle)} judges nothing without --baseline`, {
      hint: `add --baseline last, or the name of a run${idle === 'maxCost' ? '; --cost-limit is what ends a run that spent as much' : ''}`,
    });
  policyOf(args);
}

export function policyOf(args: GateArgs): GatePolicy {
  return {
    minResolved: args.minResolved,
    maxDrop: args.maxDrop,
    maxInfra: args.maxInfra,
    maxBroken: args.maxBroken,
    maxCostNano: args.maxCost === undefined ? undefined : dollarsToNano(args.maxCost),
    mustPass: args.mustPass === undefined ? undefined : idsFrom(args.mustPass),
    setChanges: args.setChanges,
  };
}

function idsFrom(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new UserError(`--must-pass: there is no file ${path}`);
  const ids = readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .map((l) => l.replace(/#.*/, '').trim())
    .filter(Boolean);
  if (ids.length === 0) throw new UserError(`--must-pass: ${path} names no instance`);
  return ids;
}
