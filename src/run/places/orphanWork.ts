/**
 * End states of containers that nobody needs: the process that kept them is dead, and the record has the attempt and no use for them. One
 * that the record does not know may belong to another results root and stays.
 */
import { discardWork } from '../../environment/docker/work/keepWork.ts';
import { listWorkImages, type WorkImage } from '../../environment/docker/work/workImages.ts';
import type { MachineFacts } from '../../environment/owner.ts';
import { imagesOfWork } from '../../grading/gradingFrame.ts';
import type { Store } from '../../store/open.ts';
import { worksOfContainer } from '../../store/records/evaluations.ts';

export interface OrphanWork {
  readonly orphans: readonly WorkImage[];
  readonly removed: readonly WorkImage[];
  /** Orphans that the engine would not remove, because a container of theirs is there. */
  readonly failed: readonly WorkImage[];
  /** Of an owner that lives or cannot be judged from here, of a trial that can still be graded, or of no attempt in the record. */
  readonly kept: readonly WorkImage[];
}

/** A result may be graded later, from what was kept of it. Whatever an attempt without a result left is made anew with the next one. */
function isNeedless({ name, container, owner }: WorkImage, store: Store): boolean {
  if (owner !== 'dead' || container === '') return false;
  const attempts = worksOfContainer(store, container);
  try {
    return (
      attempts.length > 0 &&
      attempts.every(
        ({ is_result, work_image }) =>
          is_result === 0 || work_image === null || !imagesOfWork(work_image).includes(name),
      )
    );
  } catch {
    // What cannot be read may name it.
    return false;
  }
}

/** `store`: the record of a results root; undefined where there is none, and then nothing is proven. */
export async function cleanWork(
  docker: Parameters<typeof listWorkImages>[0],
  store: Store | undefined,
  { dryRun, machine }: { readonly dryRun: boolean; readonly machine?: MachineFacts },
): Promise<OrphanWork> {
  const all = await listWorkImages(docker, machine);
  const orphans = all.filter((image) => store !== undefined && isNeedless(image, store));
  const kept = all.filter((image) => !orphans.includes(image));
  if (dryRun) return { orphans, removed: [], failed: [], kept };
  for (const { name } of orphans) await discardWork(docker, name);
  const left = new Set((await listWorkImages(docker, machine)).map(({ name }) => name));
  return {
    ...{ orphans, kept },
    removed: orphans.filter(({ name }) => !left.has(name)),
    failed: orphans.filter(({ name }) => left.has(name)),
  };
}
