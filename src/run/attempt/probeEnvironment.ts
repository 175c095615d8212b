/**
 * Checks before the first step that the shell uses the right Python environment. In a wrong one every command of the agent would run, with
 * wrong results. The check uses the same channel as the agent's commands.
 */

import { type Environment, EnvironmentError } from '../../environment/environment.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { environmentKindOf } from '../../environment/environments.ts';
import type { PhaseTracker } from '../control/phases.ts';
import { LOGIN_SHELL, WRONG_ENVIRONMENT } from '../exit.ts';
import type { PlannedTrial } from '../plannedTrial.ts';

/** Top-level packages of the repositories of SWE-bench, where the name differs from the repository's. */
const PACKAGES: Readonly<Record<string, string>> = {
  'astropy/astropy': 'astropy',
  'django/django': 'django',
  'matplotlib/matplotlib': 'matplotlib',
  'mwaskom/seaborn': 'seaborn',
  'pallets/flask': 'flask',
  'psf/requests': 'requests',
  'pydata/xarray': 'xarray',
  'pylint-dev/pylint': 'pylint',
  'pytest-dev/pytest': 'pytest',
  'scikit-learn/scikit-learn': 'sklearn',
  'sphinx-doc/sphinx': 'sphinx',
  'sympy/sympy': 'sympy',
};

/** Null when nothing is checked. */
function probedPackage(
  config: Pick<EnvironmentConfig, 'probe' | 'environment_class'>,
  repo: string,
): string | null {
  if (config.probe === 'off') return null;
  if (config.probe !== 'auto') return config.probe;
  return environmentKindOf(config).inImages ? (PACKAGES[repo] ?? null) : null;
}

/** The environment of the image is the one that its login shells have. */
async function byLoginShell(
  environment: Environment,
  command: string,
  signal: AbortSignal,
): Promise<boolean> {
  const quoted = command.replaceAll("'", `'\\''`);
  return (await environment.execute(`bash -lc '${quoted}'`, { cwd: '/', signal })).exitCode === 0;
}

export async function probeEnvironment(
  { arm, repo, image }: Pick<PlannedTrial, 'arm' | 'repo' | 'image'>,
  environment: Environment,
  phases: PhaseTracker,
  signal: AbortSignal,
): Promise<void> {
  const name = probedPackage(arm.environment, repo);
  if (name === null) return;
  phases.begin('probe');
  // From the root folder, because any Python finds a package in its own checkout.
  const script = `import importlib.util, sys; sys.exit(importlib.util.find_spec("${name}") is None)`;
  const command = `python -c '${script}'`;
  const result = await environment.execute(command, { cwd: '/', signal });
  if (result.exitCode === 0) return;
  const { interpreter } = arm.environment;
  if (await byLoginShell(environment, command, signal))
    throw new EnvironmentError(
      'start_failed',
      `python package "${name}" of ${image} is there in a login shell only, and commands run by "${interpreter.join(' ')}": set environment.interpreter to [bash, -lc]; for a configuration of mini-swe-agent agent.compat (mini-swe-agent-1 or mini-swe-agent-2) does that`,
      { sub: LOGIN_SHELL, evidence: { package: name, image, interpreter } },
    );
  const tail = result.output.trim().slice(-200);
  throw new EnvironmentError(
    'start_failed',
    `python package "${name}" not importable in ${image}${tail ? ` (${tail})` : ''}: its shell uses another environment; set environment.env.BASH_ENV to the file that activates it, or environment.probe to off`,
    { sub: WRONG_ENVIRONMENT, evidence: { package: name, image, exitCode: result.exitCode, output: tail } },
  );
}
