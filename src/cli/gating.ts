/** The policy of a gate from its flags, and what is said of a night that could not be confirmed. */
import { existsSync, readFileSync } from 'node:fs';
import { inert } from '../base/text/inert.ts';
import { dollarsToNano } from '../money.ts';
import type { GateResult } from '../report/gate/gate.ts';
import type { GatePolicy } from '../report/gate/rules.ts';
import { UserError } from '../service/userError.ts';
import type { GateArgs } from './flags/gateFlags.ts';
import { say } from './terminal/context.ts';

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
  if (!existsSync(path)) throw new UserError(`--must-pass: there is no file ${path}`);
  const ids = readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .map((l) => l.replace(/#.*/, '').trim())
    .filter(Boolean);
  if (ids.length === 0) throw new UserError(`--must-pass: ${path} names no instance`);
  return ids;
}

/** What should have been measured again and could not be: the night is incomplete. */
export function sayUnconfirmed({ unconfirmed }: GateResult): void {
  say(
    `incomplete: ${unconfirmed.length} newly broken instance(s) could not be measured again: ${unconfirmed.slice(0, 5).map(inert).join(', ')}`,
  );
}
