/** Gradings that the container engine took with it when it went away: they are made again, and are no verdict. */
import { isLoss } from '../../environment/environment.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import type { Gradable } from '../../store/records/evaluations.ts';
import { FREE_OUTAGES } from '../control/retryPolicy.ts';
import type { RunEvents } from '../events.ts';
import type { Verdict } from './gradeTrial.ts';

export interface OutageParts {
  readonly engine: EngineWatch | undefined;
  readonly events: Pick<RunEvents, 'emit'>;
  again(gradable: Gradable): void;
}

export interface GradingOutages {
  /** True when the grading says nothing; it is made again, or stays open for the next evaluation when the engine does not come back. */
  caused(
    gradable: Gradable,
    verdict: Verdict,
    began: number | undefined,
    signal: AbortSignal,
  ): Promise<boolean>;
}

export function createGradingOutages({ engine, events, again }: OutageParts): GradingOutages {
  const counts = new Map<number, number>();
  return {
    async caused(gradable, { label, result }, began, signal) {
      const away = began !== undefined && engine!.awaySince(began);
      const lost = result.engineLost ?? false;
      if (!lost && !(away && result.repeatAlone)) return false;
      const times = (counts.get(gradable.trial_id) ?? 0) + 1;
      counts.set(gradable.trial_id, times);
      if (times <= FREE_OUTAGES && (await comesBack(engine, signal))) {
        again(gradable);
        return true;
      }
      if (lost)
        events.emit({ type: 'note', text: `${label.instanceId} was not graded: ${result.errorMessage}` });
      return lost;
    },
  };
}

async function comesBack(engine: EngineWatch | undefined, signal: AbortSignal): Promise<boolean> {
  try {
    await engine?.back(signal);
    return true;
  } catch (error) {
    if (isLoss(error)) return false;
    throw error;
  }
}
