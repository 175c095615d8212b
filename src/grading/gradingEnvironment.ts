/** The environment that grading runs in: the harness's own, with its network, and limits that only a bomb meets, unless the user says otherwise. */
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import { environmentConfigSchema } from '../environment/environments.ts';
import { type GradingConfig, limitsOf } from './gradingConfig.ts';

/** Output of one test run that is kept; the largest official log is under 10 MB. */
const MAX_LOG_BYTES = 64 * 1024 * 1024;
/** Pull, patch and clean-up around the tests. */
const AROUND_S = 3600;

export function gradingEnvironment(
  grading: GradingConfig,
  base: Partial<EnvironmentConfig> = {},
): EnvironmentConfig {
  const limits = limitsOf(grading);
  return environmentConfigSchema.parse({
    ...base,
    network: grading.network === 'none' ? 'none' : 'bridge',
    memory: grading.memory ?? String(limits.memory_bytes),
    pids_limit: limits.pids,
    cpus: limits.cpus,
    disk: '0',
    cwd: '/testbed',
    env: {},
    user: 'root',
    timeout: 600,
    container_timeout: grading.timeout > 0 ? grading.timeout + AROUND_S : 0,
    max_output_bytes: MAX_LOG_BYTES,
    // The tests run as root beside it: a process of ours in there could be tampered with.
    supervisor: false,
    seal_history: false,
  });
}

/** What to pass to `createDockerFactory` beside the configuration: nothing of ours in the container's environment, no snapshot. */
export const GRADING_DOCKER_OPTIONS = { quietEnv: false, snapshot: false } as const;
