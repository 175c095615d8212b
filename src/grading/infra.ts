/**
 * Signatures of a broken environment in a log. Advisory, as in the harness: a flagged instance keeps its verdict, so that printing one
 * of these lines cannot take an instance out of the count.
 */
import { universalNewlines } from '../base/python/lines.ts';

type InfraTier = 'environment' | 'ambiguous';
export interface InfraSignature {
  readonly reason: string;
  readonly tier: InfraTier;
}

/** In order; the first hit wins. `(?<![^\n])` and `(?![^\n])` are Python's ^ and $ with MULTILINE. */
const SIGNATURES: readonly (InfraSignature & { readonly pattern: RegExp })[] = [
  {
    reason: 'browser_launch_failed',
    tier: 'environment',
    pattern: /Failed to launch|Failed to connect to the bus/,
  },
  {
    reason: 'display_unavailable',
    tier: 'environment',
    pattern: /cannot open display|Missing X server|unable to open X display/,
  },
  {
    reason: 'out_of_memory',
    tier: 'environment',
    pattern: /Cannot allocate memory|OutOfMemoryError|(?<![^\n])Killed(?![^\n])/,
  },
  {
    reason: 'container_unavailable',
    tier: 'environment',
    pattern: /Error response from daemon|Cannot connect to the Docker daemon/,
  },
  {
    reason: 'network_unreachable',
    tier: 'environment',
    pattern: /Could not resolve host|Temporary failure in name resolution/,
  },
  {
    reason: 'missing_module',
    tier: 'ambiguous',
    pattern: /Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError/,
  },
  { reason: 'no_tests_collected', tier: 'ambiguous', pattern: /no tests ran|collected 0 items/ },
  { reason: 'tests_timed_out', tier: 'ambiguous', pattern: /Timeout error: \d+ seconds exceeded/ },
];

export function classifyLog(...texts: readonly string[]): InfraSignature | undefined {
  const text = universalNewlines(texts.join('\n'));
  const hit = SIGNATURES.find(({ pattern }) => pattern.test(text));
  return hit && { reason: hit.reason, tier: hit.tier };
}
