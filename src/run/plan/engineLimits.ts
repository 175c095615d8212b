/** An engine that takes limits and does not enforce them: one agent could then take the whole machine. */

import { bad, type Finding, good } from '../../base/finding.ts';
import { parseSize } from '../../base/text/units.ts';
import { onEngines } from '../../environment/environments.ts';
import type { EngineInfo } from '../../environment/places/engines/engineInfo.ts';
import { limitsOf } from '../../grading/gradingConfig.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

type Asked = Pick<ResolvedConfig, 'arms' | 'grading'>;

/** For each key that asks for a limit, the setting that does not: sizes are text, the others numbers. */
function limitKeys({ arms, grading }: Asked): string[] {
  const own = arms
    .map(({ environment }) => environment)
    .filter(onEngines)
    .flatMap(({ memory, pids_limit, cpus }) => [
      ...(parseSize(memory) > 0 ? ['environment.memory="0"'] : []),
      ...(pids_limit > 0 ? ['environment.pids_limit=0'] : []),
      ...(cpus > 0 ? ['environment.cpus=0'] : []),
    ]);
  const limits = limitsOf(grading);
  const ofGrading = [
    ...(limits.memory_bytes > 0 ? ['grading.memory="0"'] : []),
    ...(limits.pids > 0 ? ['grading.pids_limit=0'] : []),
    ...(limits.cpus > 0 ? ['grading.cpus=0'] : []),
  ];
  return [...new Set([...own, ...(grading.enabled ? ofGrading : [])])];
}

/** Empty for an engine that enforces limits. */
export function limitFindings(engine: EngineInfo, what: string, asked: Asked): Finding[] {
  if (!engine.ok || !engine.limitsIgnored) return [];
  const detail = `${engine.name} ${engine.version}${engine.rootless ? ', rootless,' : ''} on cgroup v${engine.cgroupVersion} does not enforce limits of memory, processes and processors`;
  const keys = limitKeys(asked);
  if (keys.length === 0) return [good(what, `${detail}; the configuration asks for none`)];
  return [
    bad(
      what,
      detail,
      `run Podman as root, or on a machine with cgroup v2 whose controllers are delegated to your user; to run without limits set ${keys.join(', ')}`,
    ),
  ];
}
