/**
 * Signatures of a broken environment in a log. Advisory, as in the harness: a flagged instance keeps its verdict, so that printing one
 * of these lines cannot take an instance out of the count.
 */
import { universalNewlines } from '../base/python/lines.ts';
import { errorText } from '../base/text/errorText.ts';
import { EnvironmentError, isLoss } from '../environment/environment.ts';
import type { Outcome } from '../outcome.ts';
import { limitMet } from './doubts/patchDoubts.ts';
import type { Suspicion } from './suspicion/commands.ts';

type InfraTier = 'environment' | 'ambiguous';
export interface InfraSignature {
  readonly reason: string;
  readonly tier: InfraTier;
}

/** In order; the first hit wins. `(?<![^\n])` and `(?![^\n])` are Python's ^ and $ with MULTILINE. */
const SIGNATURES: readonly [reason: string, tier: InfraTier, pattern: RegExp][] = [
  ['browser_launch_failed', 'environment', /Failed to launch|Failed to connect to the bus/],
  ['display_unavailable', 'environment', /cannot open display|Missing X server|unable to open X display/],
  ['out_of_memory', 'environment', /Cannot allocate memory|OutOfMemoryError|(?<![^\n])Killed(?![^\n])/],
  ['container_unavailable', 'environment', /Error response from daemon|Cannot connect to the Docker daemon/],
  ['network_unreachable', 'environment', /Could not resolve host|Temporary failure in name resolution/],
  ['missing_module', 'ambiguous', /Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError/],
  ['no_tests_collected', 'ambiguous', /no tests ran|collected 0 items/],
  ['tests_timed_out', 'ambiguous', /Timeout error: \d+ seconds exceeded/],
];

export function classifyLog(...texts: readonly string[]): InfraSignature | undefined {
  const text = universalNewlines(texts.join('\n'));
  const hit = SIGNATURES.find(([, , pattern]) => pattern.test(text));
  return hit && { reason: hit[0], tier: hit[1] };
}

/** What becomes of a prediction whose environment broke while it was graded. */
interface BrokenEnding {
  readonly outcome: Outcome;
  readonly resolved?: false;
  readonly resolvedStrict?: false;
  readonly infraReason?: string;
  readonly suspicion?: readonly (Suspicion & { readonly strict: boolean })[];
  readonly errorMessage: string;
  readonly repeatAlone?: boolean;
  readonly engineLost?: boolean;
}

/** As missing it would be out of the count, and whoever wrote the patch chose this end. */
const endedContainer = (instanceId: string, { message }: EnvironmentError, oom: boolean): BrokenEnding => ({
  outcome: 'invalid',
  resolved: false,
  resolvedStrict: false,
  ...(oom && { infraReason: 'oom' }),
  suspicion: [
    ...(oom ? [CONTAINER_OUT_OF_MEMORY] : []),
    {
      rule: 'ended_environment',
      says: 'what ran with the patch ended its container, also when it was repeated',
      evidence: message,
      strict: true,
      inferred: true,
    },
  ],
  errorMessage: `${instanceId}: ${message}`,
  repeatAlone: true,
});

const CONTAINER_OUT_OF_MEMORY = {
  ...limitMet('memory limit reached, and the container ended'),
  inferred: true,
};

/** `alone`: it ran before, and now again with nothing beside it. */
export function brokenEnding(instanceId: string, error: unknown, alone = false): BrokenEnding {
  if (!(error instanceof EnvironmentError))
    return {
      outcome: 'infra',
      infraReason: 'internal_error',
      errorMessage: `${instanceId}: grading failed: ${errorText(error)}`,
    };
  const oom = error.code === 'died' && error.sub === 'oom';
  // One that meets a limit beside others, or tells a strange end, may be a victim of them; whoever does it again alone is not.
  const doubtful = oom || error.sub === 'forged';
  if (error.fromWithin && (alone || !doubtful)) return endedContainer(instanceId, error, oom);
  const { fromWithin } = error;
  const engineLost = isLoss(error);
  return {
    outcome: 'infra',
    infraReason: oom ? 'oom' : error.code,
    ...(oom && { suspicion: [CONTAINER_OUT_OF_MEMORY] }),
    errorMessage: `${instanceId}: ${error.message}`,
    repeatAlone: engineLost || fromWithin,
    engineLost,
  };
}
