/** What a dry run says beyond its limits: cost and time to expect from this results root's history, and what the selection cannot show. */
import { existsSync } from 'node:fs';
import { imageOf } from '../../dataset/instance.ts';
import { formatCost } from '../../money.ts';
import { DEFAULT_SEED } from '../../report/measure/armSummary.ts';
import {
  type Forecast,
  forecast,
  type Range,
  USUAL_DISCORDANCE,
  undetectable,
} from '../../report/measure/forecast.ts';
import { duration } from '../../report/render/format.ts';
import { modelNameOf, type RunRequest } from '../../runner/schedule/planRun.ts';
import { enginesOf } from '../../service/images/openImages.ts';
import { databasePath, openForReading, resultsRoot } from '../../service/resultsRoot.ts';
import { pastAttempts, pastPulls } from '../../store/records/baselines.ts';
import { type DiskAnswer, imagesToPull } from './planDisk.ts';

export interface PlanForecast {
  readonly forecast: Forecast;
  /** Share; null for fewer than two instances. */
  readonly detectableDifference: number | null;
}

export function planForecast(
  request: RunRequest,
  output: string | undefined,
  images: DiskAnswer | null,
): PlanForecast {
  const models = [...new Set(request.arms.map((a) => modelNameOf(a.model)))];
  const trials = request.arms.flatMap((arm) =>
    request.selected.map(({ instance }) => ({
      model: modelNameOf(arm.model),
      instanceId: instance.instance_id,
      repo: instance.repo,
      image: imageOf(instance),
    })),
  );
  const planned = Array.from({ length: request.run.epochs }, () => trials).flat();
  const { attempts, pulls } = historyIn(resultsRoot(output), models);
  return {
    forecast: forecast(attempts, planned, {
      slots: request.run.workers,
      seed: DEFAULT_SEED,
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
  const store = openForReading(root);
  try {
    return { attempts: models.flatMap((model) => pastAttempts(store, model)), pulls: pastPulls(store) };
  } finally {
    store.close();
  }
}

/** What the forecast of time is of: a reader plans a night by it. */
function holds({ grading, pulls }: Forecast['timeHolds']): string {
  const parts = [
    ['grading', grading],
    ['pulls', pulls],
  ] as const;
  const names = (wanted: boolean) => parts.flatMap(([name, is]) => (is === wanted ? [name] : []));
  const [known, unknown] = [names(true), names(false)];
  return [
    ...(known.length ? [`with ${known.join(' and ')}`] : []),
    ...(unknown.length ? [`without ${unknown.join(' and ')}, of which there is no history`] : []),
  ].join(', ');
}

export function forecastRows({ forecast: found, detectableDifference }: PlanForecast): [string, string][] {
  const { costNano: cost, timeMs: time, basis, timeHolds } = found;
  const beside = time ? holds(timeHolds) : '';
  const from = `from ${basis.attempts} past attempts (${basis.instance} trials by instance, ${basis.repo} by repository, ${basis.any} by model)`;
  const range = (x: Range, show: (value: number) => string) =>
    `${show(x.middle)} [${show(x.low)}, ${show(x.high)}]`;
  return [
    [
      'forecast',
      cost || time
        ? `${[...(cost ? [range(cost, formatCost)] : []), ...(time ? [range(time, duration)] : [])].join(', ')} (90 %)${beside && ` ${beside}`}, ${from}`
        : `none: no history of ${basis.none === 0 ? 'these trials' : `the model for ${basis.none} trials`} in this results root`,
    ],
    ...(detectableDifference === null
      ? []
      : [
          [
            'detectable',
            `${(100 * detectableDifference).toFixed(1)} points against another run of these instances (80 % power, ${100 * USUAL_DISCORDANCE} % discordant); smaller differences will stay unseen`,
          ] as [string, string],
        ]),
  ];
}
