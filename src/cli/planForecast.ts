/** What a dry run says beyond its limits: cost and time to expect from this results root's history, and what the selection cannot show. */
import { existsSync } from 'node:fs';
import { formatCost } from '../money.ts';
import { type Forecast, forecast, type Range, USUAL_DISCORDANCE, undetectable } from '../report/forecast.ts';
import { duration } from '../report/format.ts';
import { DEFAULT_SEED } from '../report/summary.ts';
import { modelNameOf, type RunRequest } from '../runner/plan.ts';
import { pastAttempts } from '../store/baselines.ts';
import { databasePath, openForReading, resultsRoot } from './context.ts';

export interface PlanForecast {
  readonly forecast: Forecast;
  /** Share; null for fewer than two instances. */
  readonly detectableDifference: number | null;
}

export function planForecast(request: RunRequest, output: string | undefined): PlanForecast {
  const models = [...new Set(request.arms.map((a) => modelNameOf(a.model)))];
  const trials = request.arms.flatMap((arm) =>
    request.selected.map(({ instance }) => ({
      model: modelNameOf(arm.model),
      instanceId: instance.instance_id,
      repo: instance.repo,
    })),
  );
  const planned = Array.from({ length: request.run.epochs }, () => trials).flat();
  return {
    forecast: forecast(historyIn(resultsRoot(output), models), planned, {
      slots: request.run.workers,
      seed: DEFAULT_SEED,
    }),
    detectableDifference: undetectable(request.selected.length),
  };
}

/** A first run has no database yet, and a dry run makes none. */
function historyIn(root: string, models: readonly string[]) {
  if (!existsSync(databasePath(root))) return [];
  const store = openForReading(root);
  try {
    return models.flatMap((model) => pastAttempts(store, model));
  } finally {
    store.close();
  }
}

export function forecastRows({ forecast: found, detectableDifference }: PlanForecast): [string, string][] {
  const { costNano: cost, timeMs: time, basis } = found;
  const from = `from ${basis.attempts} past attempts (${basis.instance} trials by instance, ${basis.repo} by repository, ${basis.any} by model)`;
  const range = (x: Range, show: (value: number) => string) =>
    `${show(x.middle)} [${show(x.low)}, ${show(x.high)}]`;
  return [
    [
      'forecast',
      cost || time
        ? `${[...(cost ? [range(cost, formatCost)] : []), ...(time ? [range(time, duration)] : [])].join(', ')} (90 %), ${from}`
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
