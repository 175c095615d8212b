/** The forecast of a dry run: cost and time from the history of this results root, and the smallest difference that can be detected. */
import { existsSync } from 'node:fs';
import { type Forecast, type ForecastTrial, forecast, undetectable } from '../../report/measure/forecast.ts';
import { RESAMPLING_SEED } from '../../report/measure/summary.ts';
import { pastAttempts, pastPulls } from '../../store/records/baselines.ts';
import { enginesOf } from '../places/openImages.ts';
import { databasePath, openForReading } from '../resultsRoot.ts';
import { type DiskAnswer, imagesToPull } from './planDisk.ts';
import { modelNameOf, type RunRequest } from './planRecord.ts';

export interface PlanForecast {
  readonly forecast: Forecast;
  /** Share; null for fewer than two instances. */
  readonly detectableDifference: number | null;
}

export function planForecast(
  request: RunRequest,
  instances: readonly { readonly instanceId: string; readonly repo: string; readonly image: string }[],
  root: string,
  images: DiskAnswer | null,
): PlanForecast {
  const models = [...new Set(request.arms.map((a) => modelNameOf(a.model)))];
  const { attempts, pulls } = historyIn(root, models);
  const trials = request.arms.flatMap((arm) => {
    const model = modelNameOf(arm.model);
    // Without history all trials are alike.
    return attempts.length === 0
      ? Array<ForecastTrial>(instances.length).fill({ model, instanceId: '', repo: '' })
      : instances.map((instance) => ({ ...instance, model }));
  });
  const planned = Array.from({ length: request.run.epochs }, () => trials).flat();
  return {
    forecast: forecast(attempts, planned, {
      slots: request.run.workers,
      seed: RESAMPLING_SEED,
      ...(request.grading.enabled ? { graders: request.grading.workers } : {}),
      pulls: { images: imagesToPull(images), parallel: pullsAtATime(request), past: pulls },
    }),
    detectableDifference: undetectable(request.selected.length),
  };
}

/** Every engine has its own. */
const pullsAtATime = ({ arms, images }: RunRequest): number =>
  (images?.max_concurrent_pulls ?? 1) * Math.max(1, enginesOf(arms).length);

/** A first run has no database yet, and a dry run makes none. */
function historyIn(root: string, models: readonly string[]) {
  if (!existsSync(databasePath(root))) return { attempts: [], pulls: [] };
  using store = openForReading(root);
  return { attempts: models.flatMap((model) => pastAttempts(store, model)), pulls: pastPulls(store) };
}
