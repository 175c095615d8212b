/** The settings under `grading:`. */
import { totalmem } from 'node:os';
import { z } from 'zod';
import { identity, runtime } from '../base/fieldClass.ts';
import { setting } from '../base/plausible.ts';
import { parseSize } from '../base/text/units.ts';
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import { environmentConfigSchema } from '../environment/environments.ts';

export const gradingConfigSchema = z.strictObject({
  enabled: z.boolean().default(false).meta(runtime('grade predictions as they arrive (--evaluate)')),
  harness: z
    .enum(['v5', 'v4.1'])
    .default('v5')
    .meta(identity('whose rules hold: those of harness 5.0 or 4.1')),
  network: z
    .enum(['default', 'none'])
    .default('default')
    .meta(identity("default is the harness's own: a bridge")),
  workers: setting.atOnce(1).default(2).meta(runtime()),
  timeout: setting.seconds().default(1800).meta(identity('seconds for the eval script')),
  // Without defaults here: runs that were recorded before these limits keep their hash.
  memory: setting
    .size()
    .optional()
    .meta(identity('default: 16g, or three quarters of this machine; 0: no limit, as the harness')),
  pids_limit: setting
    .processes(0)
    .optional()
    .meta(identity('processes and threads; default 8192, 0: no limit')),
  cpus: setting.processors().optional().meta(identity('default 0: no limit, as the harness')),
  cap_add: z
    .array(z.string().regex(/^[A-Z_]+$/, 'a capability is written like SYS_ADMIN'))
    .default([])
    .meta(identity('capabilities of grading containers; browser tests need SYS_ADMIN')),
  parsers: z
    .record(z.string(), z.string())
    .default({})
    .meta(identity('log parser id to the path of a module that exports parseLog')),
});
export type GradingConfig = z.infer<typeof gradingConfigSchema>;

/** The limits of a grading container, as recorded beside each verdict; 0 is none. Far above what test suites need: only a bomb meets them. */
export interface GradingLimits {
  readonly memory_bytes: number;
  readonly pids: number;
  readonly cpus: number;
}

const MEMORY_BYTES = 16 * 2 ** 30;
/** The container's share: beside it there are the engine, the other gradings and this program. */
const SHARE = 0.75;
const PIDS = 8192;

/** `machineBytes`: the memory of the machine; a container that may take all of it ends others. */
export const limitsOf = (
  { memory, pids_limit, cpus }: Pick<GradingConfig, 'memory' | 'pids_limit' | 'cpus'>,
  machineBytes = totalmem(),
): GradingLimits => ({
  memory_bytes:
    memory === undefined ? Math.floor(Math.min(MEMORY_BYTES, machineBytes * SHARE)) : parseSize(memory),
  pids: pids_limit ?? PIDS,
  cpus: cpus ?? 0,
});

// The environment that grading runs in: the harness's own, with its network, and limits that only a bomb meets, unless the user says
// otherwise.

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

/** Options for `createDockerFactory` beside the configuration: nothing of ours in the container's environment, no snapshot. */
export const GRADING_DOCKER_OPTIONS = { quietEnv: false, snapshot: false } as const;
