/** Checks before anything is made, started or paid. Reports all problems at once. */

import { bad, type Finding } from '../../base/finding.ts';
import { parseSize } from '../../base/text/units.ts';
import { environmentFindings, environmentKindOf } from '../../environment/environments.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';
import { engineInfo } from '../../environment/places/engineInfo.ts';
import { isLocal } from '../../environment/places/imageService.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import type { Caller } from '../caller.ts';
import { neverRoom } from '../control/diskFloor.ts';
import { engineSilent } from '../places/engines.ts';
import { UserError } from '../userError.ts';
import { checkArm, deadEndpoints, suiteFindings, templateFindings } from './armChecks.ts';
import { engineFindings, limitFindings, type PlatformAsked, refusalFindings } from './engineFit.ts';
import { copyFindings } from './localCopies.ts';
import type { RunRequest } from './planRecord.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

type Checked = Pick<ResolvedConfig, 'arms' | 'run' | 'grading'> &
  Partial<Pick<ResolvedConfig, 'keys' | 'images' | 'suite' | 'unwritten' | 'replacedBy'>> & {
    /** The tasks, where they are known. */
    readonly selected?: RunRequest['selected'];
  };

/** What `run`, `run --dry-run` and `doctor` refuse, by the same words. */
interface CheckedPlan {
  /** The configuration is wrong: nothing can be made of it. */
  readonly wrong: readonly string[];
  /** Something is not here now: a key, credentials, a package, a file of replies. A plan can be made without. */
  readonly missing: readonly string[];
  readonly findings: readonly Finding[];
}

/** `knock`: whether the models will be asked; a run that only needs grading goes on without them. */
export async function preflight(checked: Checked, caller: Caller, knock: boolean): Promise<void> {
  const { wrong, missing } = await checkedPlan(checked, caller);
  if (wrong.length > 0) throw new UserError([...wrong, ...missing].join('\n'));
  const problems = [...missing, ...(knock ? await deadEndpoints(checked.arms, caller.env) : [])];
  const places = await placeProblems(checked);
  problems.push(...places.problems);
  if (places.silent !== null) throw engineSilent(places.silent, caller.env, problems);
  if (problems.length > 0) throw new UserError(problems.join('\n'));
}

interface PlaceProblems {
  readonly problems: readonly string[];
  /** Why the engine says nothing; null where it answers, or none is needed. */
  readonly silent: string | null;
}

/** Why environments could not be made where they would be. */
async function placeProblems(checked: Checked): Promise<PlaceProblems> {
  const problems = (await environmentFindings(checked.arms)).filter(({ ok }) => !ok).map(textOf);
  if (!needsEngine(checked)) return { problems, silent: null };
  const what = 'engine';
  const docker = engineClient();
  const engine = await engineInfo(docker);
  if (!engine.ok) return { problems, silent: engine.message };
  const never = isLocal(docker) ? neverRoom(engine.rootDir, parseSize(checked.run.disk_floor)) : undefined;
  const { selected = [] } = checked;
  const platform = platformAsked(checked);
  const [refused, copies] = await Promise.all([
    refusalFindings(docker, engine, what, checked),
    copyFindings(docker, what, { ...checked, selected }, platform),
  ]);
  const found = [
    ...limitFindings(engine, what, checked),
    ...engineFindings(engine, what, platform),
    ...refused,
    ...copies,
  ];
  return {
    problems: [
      ...problems,
      ...(never === undefined ? [] : [`${what}: its ${never}`]),
      ...found.filter(({ ok }) => !ok).map(textOf),
    ],
    silent: null,
  };
}

/** What `preflight` would refuse beyond a wrong configuration, for a plan that is only shown. */
export async function wouldRefuse(
  checked: Checked,
  { missing }: Pick<CheckedPlan, 'missing'>,
  caller: Caller,
): Promise<string[]> {
  const { problems, silent } = await placeProblems(checked);
  return [...missing, ...problems, ...(silent === null ? [] : [engineSilent(silent, caller.env).message])];
}

export const platformAsked = ({ arms, images }: Pick<Checked, 'arms' | 'images'>): PlatformAsked => ({
  platform: arms.find(({ environment }) => environment.platform !== undefined)?.environment.platform,
  emulation: images?.allow_emulation ?? true,
});

const textOf = ({ what, detail, fix }: Finding): string => `${what}: ${detail}; ${fix}`;

/** Checks arms and parsers. Makes nothing, and asks no engine. */
export async function checkedPlan(
  { arms, run, grading, suite, keys, unwritten, replacedBy }: Checked,
  { env, cwd }: Pick<Caller, 'env' | 'cwd'>,
): Promise<CheckedPlan> {
  const found = await Promise.all(
    arms.map(async (arm) => [
      ...(await checkArm(arm, run.cost_limit, { env: { ...env, ...keys }, cwd })),
      ...(await templateFindings(arm, unwritten?.[arm.name] ?? [], replacedBy ?? null, cwd)),
    ]),
  );
  const findings = [
    ...found.flat(),
    ...(await suiteFindings(suite, run.cost_limit, { env: { ...env, ...keys }, cwd })),
  ];
  const { parsers } = grading;
  if (grading.enabled || Object.keys(parsers).length > 0)
    await loadParsers(parsers, cwd).catch((error: Error) =>
      findings.push(bad('grading', error.message, 'correct grading.parsers')),
    );
  const failed = findings.filter(({ ok }) => !ok);
  return {
    wrong: failed.filter(({ here }) => !here).map(textOf),
    missing: failed.filter(({ here }) => here).map(textOf),
    findings,
  };
}

/** What failed is told with what to do; what was found is not. */
export function refuseFailed(findings: readonly Finding[]): void {
  const failed = findings.filter(({ ok }) => !ok);
  if (failed.length > 0) throw new UserError(failed.map(textOf).join('\n'));
}

/** As `run` refuses it. */
export function refuseWrong({ wrong }: CheckedPlan): void {
  if (wrong.length > 0) throw new UserError(wrong.join('\n'));
}

/** What says where containers run. */
export interface Placed {
  readonly arms: readonly Pick<ResolvedConfig['arms'][number], 'environment'>[];
  readonly grading: { readonly enabled: boolean };
}

export function needsEngine({ arms, grading }: Placed): boolean {
  const needs = arms.map(({ environment }) => environmentKindOf(environment).engines);
  return needs.includes('all') || (grading.enabled && needs.includes('gradings'));
}
