/**
 * An engine on which a trial would go otherwise than it should: another processor, another time, no room, copies of images that are built for another
 * platform, or limits that the engine takes and does not enforce, so that one agent could take the whole machine.
 */

import { bad, type Finding, good } from '../../base/finding.ts';
import { parseSize } from '../../base/text/units.ts';
import { headOf } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { environmentKindOf, onEngines } from '../../environment/environments.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';
import { dockerImageEngine } from '../../environment/places/imageEngine.ts';
import { isLocal } from '../../environment/places/imageService.ts';
import { gradingEnvironment, limitsOf } from '../../grading/gradingConfig.ts';
import { neverRoom } from '../control/diskFloor.ts';
import type { CheckedPlan, PlanFacts } from './planFacts.ts';

/** `environment.platform` of the arms, else what each image is; and `images.allow_emulation`. */
const platformOf = ({ arms, images }: Pick<CheckedPlan, 'arms' | 'images'>) => ({
  platform: arms.find(({ environment }) => environment.platform !== undefined)?.environment.platform,
  emulation: images?.allow_emulation ?? true,
});

/** Containers are written where the same floor holds. */
export function floorFindings({ engine, engineName, run }: PlanFacts): Finding[] {
  if (!engine?.ok || !isLocal(engineClient())) return [];
  const never = neverRoom(engine.rootDir, parseSize(run.disk_floor));
  return never === undefined ? [] : [{ what: engineName, ok: false, detail: `its ${never}`, fix: null }];
}

/** Farther off, certificates are refused, builds see files of the future, and tests that look at the date fail. */
const CLOCK_LIMIT_MS = 5 * 60_000;

export function clockFindings({ engine, engineName }: Pick<PlanFacts, 'engine' | 'engineName'>): Finding[] {
  if (!engine?.ok || Math.abs(engine.clockAheadMs) <= CLOCK_LIMIT_MS) return [];
  const minutes = Math.round(Math.abs(engine.clockAheadMs) / 60_000);
  return [
    bad(
      engineName,
      `its clock is ${minutes} min ${engine.clockAheadMs > 0 ? 'ahead of' : 'behind'} the clock here`,
      'set the clock of both machines by NTP (timedatectl set-ntp true)',
    ),
  ];
}

/** Docker says x86_64 and aarch64 of engines, amd64 and arm64 of images. */
const PROCESSORS: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

/** Where no platform is named, images may be emulated, with a warning. */
export function platformFindings(
  facts: Pick<PlanFacts, 'engine' | 'engineName' | 'arms' | 'images'>,
): Finding[] {
  const { engine, engineName } = facts;
  const { platform, emulation } = platformOf(facts);
  const wanted = platform?.split('/')[1];
  if (!engine?.ok || wanted === undefined || emulation) return [];
  const own = PROCESSORS[engine.architecture] ?? engine.architecture;
  if (own === '' || own === wanted) return [];
  return [
    bad(
      engineName,
      `it runs linux/${own} and environment.platform is ${platform}: a trial there would have another image, or an emulated one`,
      'name an engine of that platform, or set images.allow_emulation',
    ),
  ];
}

/** The setting without a limit for each key that asks for one: sizes are text, the others numbers. */
function limitKeys({ arms, grading }: Pick<PlanFacts, 'arms' | 'grading'>): string[] {
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
export function limitFindings(
  facts: Pick<PlanFacts, 'engine' | 'engineName' | 'arms' | 'grading'>,
): Finding[] {
  const { engine, engineName: what } = facts;
  if (!engine?.ok || !engine.limitsIgnored) return [];
  const detail = `${engine.name} ${engine.version}${engine.rootless ? ', rootless,' : ''} on cgroup v${engine.cgroupVersion} does not enforce limits of memory, processes and processors`;
  const keys = limitKeys(facts);
  if (keys.length === 0) return [good(what, `${detail}; the configuration asks for none`)];
  return [
    bad(
      what,
      detail,
      `run Podman as root, or on a machine with cgroup v2 whose controllers are delegated to your user; to run without limits set ${keys.join(', ')}`,
    ),
  ];
}

/** Options of containers that the engine refuses: processors that it has not, a network that is not there, a limit below its least. */
export async function optionFindings({ engine, engineName, arms, grading }: PlanFacts): Promise<Finding[]> {
  if (!engine?.ok) return [];
  const docker = engineClient();
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
      const what = `${engineName} for ${of}`;
      const few = engine.cpus > 0 && environment.cpus > engine.cpus;
      const rest = few ? { ...environment, cpus: 0 } : environment;
      const refused = (await environmentKindOf(environment).refusals?.(docker, rest, { capAdd })) ?? [];
      const detail = `${key}.cpus is ${environment.cpus}, and it has ${engine.cpus} processors`;
      return [
        ...(few ? [bad(what, detail, `set ${key}.cpus=${engine.cpus}, or use a larger engine`)] : []),
        ...refused.map((text) => bad(what, text, `correct the section ${key}`)),
      ];
    },
  );
  return (await Promise.all(found)).flat();
}

/** The images that trials run in and are graded in. */
export function imagesOf({
  arms,
  selected = [],
  grading,
}: Pick<CheckedPlan, 'arms' | 'selected' | 'grading'>): string[] {
  const inContainers = arms.filter(({ environment }) => onEngines(environment));
  const byRow = grading.enabled || inContainers.some(({ environment }) => !environment.image);
  const rows = byRow ? selected.map((row) => imageOf(headOf(row))) : [];
  const runs = inContainers.flatMap(({ environment }) => (environment.image ? [environment.image] : rows));
  return [...new Set([...runs, ...(grading.enabled ? rows : [])])];
}

/** Images that the engine is asked about at the same time. */
const AT_ONCE = 16;
const NAMED = 3;

/** A copy is not pulled again by itself. Empty where nothing is asked for that a copy could lack, and where copies are pulled anew. */
export async function copyFindings(facts: PlanFacts): Promise<Finding[]> {
  const { engine: answer, engineName, arms } = facts;
  const first = arms.find(({ environment }) => onEngines(environment));
  const { platform, emulation } = platformOf(facts);
  if (!answer?.ok || !first || first.environment.pull === 'always') return [];
  if (platform === undefined && emulation) return [];
  const engine = dockerImageEngine(engineClient());
  const own = await engine.info();
  const wanted = platform ?? `${own.os}/${own.architecture}`;
  const wrong = new Map<string, string[]>();
  const images = imagesOf(facts);
  for (let at = 0; at < images.length; at += AT_ONCE) {
    const asked = images
      .slice(at, at + AT_ONCE)
      .map(async (image) => ({ image, copy: await engine.inspect(image) }));
    for (const { image, copy } of await Promise.all(asked)) {
      if (!copy) continue;
      const built = `${copy.os}/${copy.architecture}`;
      if (!`${wanted}/`.startsWith(`${built}/`)) wrong.set(built, [...(wrong.get(built) ?? []), image]);
    }
  }
  return [...wrong].map(([built, names]) => {
    const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
    const asked =
      platform === undefined
        ? { why: `it runs ${wanted}, and images.allow_emulation is off`, or: 'images.allow_emulation=true' }
        : { why: `and environment.platform is ${platform}`, or: `environment.platform=${built}` };
    return bad(
      engineName,
      `its copies of ${names.slice(0, NAMED).join(', ')}${more} are built for ${built}, ${asked.why}`,
      `pull them for ${wanted} with --pull always, or set ${asked.or}`,
    );
  });
}
