/** End states that were kept of attempts whose results do not count: of a process that died, or of a step before the engine was away. */
import { errorText } from '../../base/text/errorText.ts';
import { imagesOfWork } from '../../grading/gradingFrame.ts';
import { abandonedWorks, noteWork } from '../../store/records/evaluations.ts';
import type { Run } from '../contract.ts';

/** Never throws for an engine: what could not be removed is tried again in the next sitting. */
export async function discardAbandonedWork({ store, row, arms, log }: Run): Promise<void> {
  for (const { id, work_image } of abandonedWorks(store, row.id))
    try {
      for (const image of imagesOfWork(work_image))
        for (const { environmentFactory } of arms.values()) await environmentFactory.discardWork?.(image);
      noteWork(store, id, null);
    } catch (error) {
      log('warn', `an end state that nobody needs could not be removed: ${errorText(error)}`);
    }
}
