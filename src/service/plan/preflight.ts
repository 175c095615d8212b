/** Checks before anything is made, started or paid. Reports all problems at once. */
import { engineInfo } from '../../environment/engines/engineInfo.ts';
import { loadParsers } from '../../grading/userParsers.ts';
import type { Caller } from '../caller.ts';
import { requireEngine } from '../images/engines.ts';
import { UserError } from '../userError.ts';
import { checkArm } from './armChecks.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

type Checked = Pick<ResolvedConfig, 'arms' | 'run' | 'grading'> & Partial<Pick<ResolvedConfig, 'keys'>>;

export async function preflight(checked: Checked, caller: Caller): Promise<void> {
  const problems = await armProblems(checked, caller);
  const hosts = enginesNeeded(checked);
  const engines = await Promise.all(
    hosts.map((host) => engineInfo(host === undefined ? undefined : requireEngine(caller.env, host).docker)),
  );
  const silent = engines.flatMap((engine) => (engine.ok ? [] : [engine.message]));
  // One answering engine is enough to begin; the others are tried again during the run.
  if (hosts.length > 0 && silent.length === engines.length)
    throw new UserError([...problems, `Docker does not answer (${silent.join('; ')})`].join('\n'), {
      next: { do: 'check_engine' },
    });
  if (problems.length > 0) throw new UserError(problems.join('\n'));
}

/** Problems of the arms and parsers; needs no engine. */
export async function armProblems(
  { arms, run, grading, keys }: Checked,
  { env, cwd }: Pick<Caller, 'env' | 'cwd'>,
): Promise<string[]> {
  const findings = await Promise.all(
    arms.map((arm) => checkArm(arm, run.cost_limit, { env: { ...env, ...keys }, cwd })),
  );
  const problems = findings
    .flat()
    .filter((finding) => !finding.ok)
    .map(({ what, detail, fix }) => `${what}: ${detail}; ${fix}`);
  if (grading.enabled)
    await loadParsers(grading.parsers, cwd).catch((error: Error) => problems.push(error.message));
  return problems;
}

/** Engines that containers will run on; undefined is the default one. Empty when no container is needed. */
export function enginesNeeded({ arms, grading }: Pick<Checked, 'arms' | 'grading'>): (string | undefined)[] {
  if (!grading.enabled && arms.every((arm) => arm.environment.environment_class !== 'docker')) return [];
  const hosts = [...new Set(arms.flatMap((arm) => arm.environment.hosts.map((h) => h.host)))];
  return hosts.length > 0 ? hosts : [undefined];
}
