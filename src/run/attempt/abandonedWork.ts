/** End states that were kept of attempts whose results do not count: of a process that died, or of a step before the engine was away. */
import { errorText } from '../../base/text/errorText.ts';
import type { EnvironmentFactory } from '../../environment/environment.ts';
import { imagesOfWork } from '../../grading/keptWork.ts';
import type { Store } from '../../store/open.ts';
import { abandonedWorks, noteWork } from '../../store/records/evaluations.ts';

/** Never throws for an engine: what could not be removed is tried again in the next sitting. */
export async function discardAbandonedWork(
  store: Store,
  runId: number,
  factories: readonly Pick<EnvironmentFactory, 'discardWork'>[],
  warn: (text: string) => void,
): Promise<void> {
  for (const { id, work_image } of abandonedWorks(store, runId))
    try {
      for (const image of imagesOfWork(work_image))
        for (const factory of factories) await factory.discardWork?.(image);
      noteWork(store, id, null);
    } catch (error) {
      warn(`an end state that nobody needs could not be removed: ${errorText(error)}`);
    }
}
