/** How long each phase of an attempt may go without progress before it counts as stalled. */
import type { RunConfig } from '../../config/runConfig.ts';
import type { ArmRuntime } from '../arms.ts';

const PROGRAM_S = 1800;

/** In milliseconds, by the name of the phase; 0 is no deadline. */
export function phaseDeadlines(
  stall: RunConfig['stall'],
  { environment, model }: Pick<ArmRuntime, 'environment' | 'model'>,
): Readonly<Record<string, number>> {
  // A command and a call have timeouts of their own: only what outlives them has stalled.
  const exec = stall.exec_s || (environment.timeout > 0 ? environment.timeout * 2 + 60 : 0);
  const call = stall.model_s || (model.total_timeout_s > 0 ? model.total_timeout_s + 60 : 0);
  const seconds = {
    start: stall.start_s,
    probe: stall.start_s,
    unpack: stall.seal_s,
    seal: stall.seal_s,
    verify: stall.seal_s,
    snapshot: stall.seal_s,
    setup: stall.setup_s,
    rate_wait: stall.rate_wait_s,
    backoff: stall.backoff_s,
    exec,
    // An installed agent between two calls of a model: it may run the tests of the repository.
    program: stall.exec_s || PROGRAM_S,
    model: call,
    // Has a limit of its own, after which the attempt goes on without the patch.
    capture: 0,
  };
  return Object.fromEntries(Object.entries(seconds).map(([phase, s]) => [phase, s * 1000]));
}
