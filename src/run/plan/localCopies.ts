/** Images that are on an engine already, and are of a platform that trials there cannot have: a copy is not pulled again by itself. */
import { bad, type Finding } from '../../base/finding.ts';
import { headOf } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { onEngines } from '../../environment/environments.ts';
import type { EngineClient } from '../../environment/places/chosenEngine.ts';
import { dockerImageEngine } from '../../environment/places/imageEngine.ts';
import type { PlatformAsked } from './engineFit.ts';
import type { RunRequest } from './planRecord.ts';

type Planned = Pick<RunRequest, 'arms' | 'selected' | 'grading'>;

/** The images that trials run in and are graded in. */
export function imagesOf({ arms, selected, grading }: Planned): string[] {
  const inContainers = arms.filter(({ environment }) => onEngines(environment));
  const byRow = grading.enabled || inContainers.some(({ environment }) => !environment.image);
  const rows = byRow ? selected.map((row) => imageOf(headOf(row))) : [];
  const runs = inContainers.flatMap(({ environment }) => (environment.image ? [environment.image] : rows));
  return [...new Set([...runs, ...(grading.enabled ? rows : [])])];
}

/** Images that the engine is asked about at the same time. */
const AT_ONCE = 16;
const NAMED = 3;

/** Empty where nothing is asked for that a copy could lack, and where copies are pulled anew. */
export async function copyFindings(
  docker: EngineClient,
  what: string,
  planned: Planned,
  { platform, emulation }: PlatformAsked,
): Promise<Finding[]> {
  const arms = planned.arms.filter(({ environment }) => onEngines(environment));
  if (arms.length === 0 || arms[0]!.environment.pull === 'always') return [];
  if (platform === undefined && emulation) return [];
  const engine = dockerImageEngine(docker);
  const own = await engine.info();
  const wanted = platform ?? `${own.os}/${own.architecture}`;
  const wrong = new Map<string, string[]>();
  const images = imagesOf(planned);
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
    const detail = `its copies of ${names.slice(0, NAMED).join(', ')}${more} are built for ${built}`;
    return platform === undefined
      ? bad(
          what,
          `${detail}, it runs ${wanted}, and images.allow_emulation is off`,
          `pull them for ${wanted} with --pull always, or set images.allow_emulation=true`,
        )
      : bad(
          what,
          `${detail}, and environment.platform is ${platform}`,
          `pull them for ${platform} with --pull always, or set environment.platform=${built}`,
        );
  });
}
