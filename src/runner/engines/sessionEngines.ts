/** The engines of a sitting: asked whether they answer, as long as it works. */
import type { Closing } from '../../base/async/closing.ts';
import type { EnginePool } from '../../environment/engines/enginePool.ts';
import { keepLooking } from '../../environment/engines/poolLooks.ts';
import type { RunImages } from '../../environment/images/runImages.ts';

/** The engines of the containers; absent when every arm is local. */
export interface SessionEngines {
  readonly images: RunImages;
  /** Places on several engines; absent with one. */
  readonly pool?: EnginePool;
  /** Where the engine on this machine keeps its layers. */
  readonly engineDir?: string | undefined;
}

export function keepEngines(engines: SessionEngines | undefined, closing: Closing): void {
  if (engines?.pool) closing.add(keepLooking(engines.pool.look));
}
