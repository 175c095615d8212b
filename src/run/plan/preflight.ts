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
import { engineSilent, requireEngine } from '../places/engines.ts';
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
  const places = await placeProblems(checked, caller);
  problems.push(...places.problems);
  if (places.silent) throw engineSilent(places.silent.reasons, places.silent.env, problems);
  if (problems.length > 0) throw new UserError(problems.join('\n'));
}

interface PlaceProblems {
  readonly problems: readonly string[];
  /** No engine answers; null where one does, or none is needed. */
  readonly silent: { readonly reasons: readonly string[]; readonly env: Caller['env'] } | null;
}

/** Why environments could not be made where they would be. One answering engine is enough to begin; the others are tried again during the run. */
async function placeProblems(checked: Checked, caller: Caller): Promise<PlaceProblems> {
  const problems = (await environmentFindings(checked.arms)).filter(({ ok }) => !ok).map(textOf);
  const hosts = enginesNeeded(checked);
  const asked = await Promise.all(
    hosts.map(async (host) => {
      const docker = host === undefined ? engineClient() : requireEngine(caller.env, host).docker;
      return { what: `engine ${host ?? ''}`.trim(), docker, engine: await engineInfo(docker) };
    }),
  );
  const reasons = asked.flatMap(({ engine }) => (engine.ok ? [] : [engine.message]));
  const silent = hosts.length > 0 && reasons.length === hosts.length;
  if (silent) return { problems, silent: { reasons, env: hosts.includes(undefined) ? caller.env : {} } };
  const limits = asked.flatMap(({ what, engine }) => limitFindings(engine, what, checked));
  const refused = asked.map(({ what, docker, engine }) => refusalFindings(docker, engine, what, checked));
  const { selected = [] } = checked;
  const copies = asked.map(({ what, docker, engine }) =>
    engine.ok ? copyFindings(docker, what, { ...checked, selected }, platformAsked(checked)) : [],
  );
  // Containers of one engine are written where the same floor holds; of several engines each has its own (images.disk_low).
  const floor = asked.length === 1 ? parseSize(checked.run.disk_floor) : 0;
  const small = asked.flatMap(({ what, docker, engine }) => {
    const never = engine.ok && isLocal(docker) ? neverRoom(engine.rootDir, floor) : undefined;
    return never === undefined ? [] : [`${what}: its ${never}`];
  });
  const found = [
    ...limits,
    ...engineFindings(asked, platformAsked(checked)),
    ...(await Promise.all(refused)).flat(),
    ...(await Promise.all(copies)).flat(),
  ];
  return { problems: [...problems, ...small, ...found.filter(({ ok }) => !ok).map(textOf)], silent: null };
}

/** What `preflight` would refuse beyond a wrong configuration, for a plan that is only shown. */
export async function wouldRefuse(
  checked: Checked,
  { missing }: Pick<CheckedPlan, 'missing'>,
  caller: Caller,
): Promise<string[]> {
  const { problems, silent } = await placeProblems(checked, caller);
  return [...missing, ...problems, ...(silent ? [engineSilent(silent.reasons, silent.env).message] : [])];
}

export const platformAsked = ({ arms, images }: Pick<Checked, 'arms' | 'images'>): PlatformAsked => ({
  platform: arms.find(({ environment }) => environment.platform !== undefined)?.environment.platform,
  emulation: images?.allow_emulation ?? true,
});

const textOf = ({ what, detail, fix }: Finding): string => `${what}: ${detail}; ${fix}`;

/** Checks arms, parsers and the names of engines. Makes nothing, and asks no engine. */
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
  for (const host of enginesNeeded({ arms, grading }))
    if (host !== undefined) findings.push(...engineName(host, env));
  const failed = findings.filter(({ ok }) => !ok);
  return {
    wrong: failed.filter(({ here }) => !here).map(textOf),
    missing: failed.filter(({ here }) => here).map(textOf),
    findings,
  };
}

/** An engine that does not answer may do so later; one whose name means nothing never will. */
function engineName(host: string, env: Caller['env']): Finding[] {
  try {
    requireEngine(env, host);
    return [];
  } catch (error) {
    return [bad(`engine ${host}`, (error as Error).message, 'correct environment.hosts')];
  }
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

/** Engines that containers will run on; undefined is the default one. Empty when no container is needed. */
export function enginesNeeded({ arms, grading }: Placed): (string | undefined)[] {
  const needs = arms.map(({ environment }) => environmentKindOf(environment).engines);
  if (!needs.includes('all') && !(grading.enabled && needs.includes('gradings'))) return [];
  const hosts = [...new Set(arms.flatMap((arm) => arm.environment.hosts.map((h) => h.host)))];
  return hosts.length > 0 ? hosts : [undefined];
}
