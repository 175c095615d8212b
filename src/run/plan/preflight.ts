/** Refuses a run before anything is made, started or paid, with all problems at once. A dry run tells the same. */

import type { Finding } from '../../base/finding.ts';
import type { Caller } from '../caller.ts';
import { engineSilent } from '../places/engines.ts';
import { UserError } from '../userError.ts';
import { findingsOf, type Occasion } from './checks.ts';
import { type CheckedPlan, type PlanFacts, planFacts, withEngineFacts } from './planFacts.ts';

const failed = (findings: readonly Finding[]): readonly string[] =>
  findings.flatMap(({ ok, what, detail, fix }) =>
    ok ? [] : [`${what}: ${detail}${fix === null ? '' : `; ${fix}`}`],
  );

const refuse = (problems: readonly string[]): void => {
  if (problems.length > 0) throw new UserError(problems.join('\n'));
};

/** Throws where the configuration is wrong: nothing can be made of it. Returns what is missing here now: a key, a package, a file of replies. */
async function missingHere(facts: PlanFacts): Promise<readonly string[]> {
  const findings = await findingsOf('configuration', 'run', facts);
  const [wrong, missing] = [false, true].map((here) =>
    failed(findings.filter((one) => (one.here ?? false) === here)),
  );
  if (wrong!.length > 0) refuse([...wrong!, ...missing!]);
  return missing!;
}

/** Problems of the places where environments will be, and why the engine is silent; null where it answers or none is needed. */
async function placeProblems(
  given: PlanFacts,
  occasion: Occasion,
): Promise<[readonly string[], string | null]> {
  const facts = await withEngineFacts(given);
  const { engine } = facts;
  const found = await Promise.all([
    findingsOf('places', occasion, facts),
    findingsOf('tasks', occasion, facts),
  ]);
  return [failed(found.flat()), engine && !engine.ok ? engine.message : null];
}

/** `knock`: whether the models will be asked; a run that only needs grading goes on without them. */
export async function preflight(checked: CheckedPlan, caller: Caller, knock: boolean): Promise<void> {
  const facts = planFacts(checked, caller);
  const missing = await missingHere(facts);
  const dead = knock ? failed(await findingsOf('endpoints', 'run', facts)) : [];
  const [places, silent] = await placeProblems(facts, 'run');
  const problems = [...missing, ...dead, ...places];
  if (silent !== null) throw engineSilent(silent, caller.env, problems);
  refuse(problems);
}

/**
 * Problems that `preflight` would refuse; a wrong configuration throws. `online`: models are asked now, and one that does not answer well throws
 * too.
 */
export async function wouldRefuse(
  checked: CheckedPlan,
  caller: Pick<Caller, 'env' | 'cwd'>,
  online = false,
): Promise<readonly string[]> {
  const facts = { ...planFacts(checked, caller), online };
  const missing = await missingHere(facts);
  if (online) refuse(failed(await findingsOf('endpoints', 'online', facts)));
  const [places, silent] = await placeProblems(facts, 'dry run');
  return [...missing, ...places, ...(silent === null ? [] : [engineSilent(silent, caller.env).message])];
}
