/**
 * An engine on which a trial would go otherwise than it should: another processor, another time, or limits that the engine takes and does not
 * enforce, so that one agent could take the whole machine. Told before anything is paid.
 */

import { bad, type Finding, good } from '../../base/finding.ts';
import { parseSize } from '../../base/text/units.ts';
import { environmentKindOf, onEngines } from '../../environment/environments.ts';
import type { EngineClient } from '../../environment/places/chosenEngine.ts';
import type { EngineInfo } from '../../environment/places/engineInfo.ts';
import { gradingEnvironment, limitsOf } from '../../grading/gradingConfig.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

export interface PlatformAsked {
  /** environment.platform of the arms; undefined: what the image is. */
  readonly platform: string | undefined;
  /** images.allow_emulation */
  readonly emulation: boolean;
}

/** Farther off, certificates are refused, builds see files of the future, and tests that look at the date fail. */
const CLOCK_LIMIT_MS = 5 * 60_000;

type Answered = Extract<EngineInfo, { ok: true }>;

/** Docker says x86_64 and aarch64 of engines, amd64 and arm64 of images. */
const PROCESSORS: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };
const processorOf = ({ architecture }: Answered): string => PROCESSORS[architecture] ?? architecture;

/** Empty where it fits, or does not answer. `what`: as findings name it. */
export const engineFindings = (engine: EngineInfo, what: string, wanted: PlatformAsked): Finding[] =>
  engine.ok ? [...clockFinding(what, engine.clockAheadMs), ...platformFindings(what, engine, wanted)] : [];

function clockFinding(what: string, aheadMs: number): Finding[] {
  if (Math.abs(aheadMs) <= CLOCK_LIMIT_MS) return [];
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  return [
    bad(
      what,
      `its clock is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock here`,
      'set the clock of both machines by NTP (timedatectl set-ntp true)',
    ),
  ];
}

/** Where no platform is named, images may be emulated, with a warning. */
function platformFindings(what: string, engine: Answered, { platform, emulation }: PlatformAsked): Finding[] {
  const wanted = platform?.split('/')[1];
  const own = processorOf(engine);
  if (wanted === undefined || own === '' || own === wanted || emulation) return [];
  return [
    bad(
      what,
      `it runs linux/${own} and environment.platform is ${platform}: a trial there would have another image, or an emulated one`,
      'name an engine of that platform, or set images.allow_emulation',
    ),
  ];
}

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

/** What this engine cannot give, whatever it is asked: processors that it has not, a network that is not there, a limit below its least. */
export async function refusalFindings(
  docker: EngineClient,
  engine: EngineInfo,
  what: string,
  { arms, grading }: Asked,
): Promise<Finding[]> {
  if (!engine.ok) return [];
  const own = arms.flatMap(({ name, environment }) =>
    onEngines(environment) ? [{ key: 'environment', of: `arm ${name}`, environment, capAdd: [] }] : [],
  );
  const graded = {
    key: 'grading',
    of: 'grading',
    environment: gradingEnvironment(grading, { platform: arms[0]?.environment.platform }),
    capAdd: grading.cap_add,
  };
  const found = [...own, ...(grading.enabled ? [graded] : [])].map(
    async ({ key, of, environment, capAdd }) => {
      const few = engine.cpus > 0 && environment.cpus > engine.cpus;
      const rest = few ? { ...environment, cpus: 0 } : environment;
      const refused = (await environmentKindOf(environment).refusals?.(docker, rest, { capAdd })) ?? [];
      return [
        ...(few
          ? [
              bad(
                `${what} for ${of}`,
                `${key}.cpus is ${environment.cpus}, and it has ${engine.cpus} processors`,
                `set ${key}.cpus=${engine.cpus}, or use a larger engine`,
              ),
            ]
          : []),
        ...refused.map((text) => bad(`${what} for ${of}`, text, `correct the section ${key}`)),
      ];
    },
  );
  return (await Promise.all(found)).flat();
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
