/** The limits of grading containers: far above what test suites need, so that only a bomb meets them. 0 is no limit. */
import { totalmem } from 'node:os';
import { parseSize } from '../base/text/units.ts';
import type { GradingConfig } from './gradingConfig.ts';
import { type Finding, finding } from './patchDoubts.ts';

/** As they are recorded beside each verdict. */
export interface GradingLimits {
  readonly memory_bytes: number;
  readonly pids: number;
  readonly cpus: number;
}

const MEMORY_BYTES = 16 * 2 ** 30;
/** Beside the container there are the engine, the other gradings and this program. */
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

export const limitMet = (evidence: string): Finding =>
  finding('limit_met', 'the tests met a limit of their container', evidence, false);
