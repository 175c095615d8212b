/** `run --dry-run`: what would run, what it needs, and what it can show. Needs no replies; without an engine or a registry it says what it cannot know. */

import { inert } from '../../base/text/inert.ts';
import { imageOf } from '../../dataset/instance.ts';
import { isFreeName } from '../../model/prices.ts';
import { makespan } from '../../report/measure/forecast.ts';
import { duration, plural } from '../../report/render/format.ts';
import { toJson } from '../../report/render/json.ts';
import { renderTerminal } from '../../report/render/renderTerminal.ts';
import type { RunRequest } from '../../runner/schedule/planRun.ts';
import { modelNameOf } from '../../runner/schedule/planRun.ts';
import type { RunArgs } from '../flags/runFlags.ts';
import { EXIT, printData, printJson } from './context.ts';
import { diskRows, imageStates, planDisk } from './planDisk.ts';
import { forecastRows, planForecast } from './planForecast.ts';
import { table } from './table.ts';

export async function printPlan(request: RunRequest, args: RunArgs): Promise<number> {
  const plan = await planOf(request, args);
  if (args.json) printJson(toJson(plan));
  else printData(textOf(plan));
  return EXIT.done;
}

type Plan = Awaited<ReturnType<typeof planOf>>;

async function planOf(request: RunRequest, args: RunArgs) {
  const instances = request.selected.map((s) => ({
    instance_id: s.instance.instance_id,
    repo: s.instance.repo,
    image: imageOf(s.instance),
  }));
  const imagePlan = await planDisk(request);
  return {
    run_id: request.name,
    dataset: request.dataset.source,
    revision: request.dataset.revision,
    instances,
    arms: request.arms.map((a) => ({
      name: a.name,
      model: modelNameOf(a.model),
      step_limit: a.agent.step_limit,
      cost_limit: a.agent.cost_limit,
    })),
    epochs: request.run.epochs,
    trials: instances.length * request.arms.length * request.run.epochs,
    slots: request.run.workers,
    images: new Set(instances.map((i) => i.image)).size,
    image_plan: imagePlan,
    worst_case_dollars: worstDollars(request),
    worst_case_seconds: worstSeconds(request),
    evaluate: request.grading.enabled,
    ...planForecast(request, args.output, imagePlan),
  };
}

function textOf(plan: Plan): string {
  const state = imageStates(plan.image_plan);
  const arms = plan.arms.map(
    (a) =>
      `${a.name} (${a.model}, ${a.step_limit || 'no'} steps, ${a.cost_limit ? `$${a.cost_limit}` : 'no cost limit'})`,
  );
  const rows: [string, string][] = [
    ['run', `${plan.run_id} (dry run: nothing is started)`],
    ['dataset', `${plan.dataset}${plan.revision ? ` @ ${plan.revision}` : ''}`],
    ['arms', arms.join(', ')],
    [
      'trials',
      `${plural(plan.instances.length, 'instance')} x ${plural(plan.arms.length, 'arm')} x ${plural(plan.epochs, 'epoch')} = ${plan.trials}, on ${plural(plan.slots, 'slot')}`,
    ],
    ...diskRows(plan.images, plan.image_plan),
    [
      'worst cost',
      plan.worst_case_dollars === null
        ? 'unlimited: set agent.cost_limit or --cost-limit'
        : `$${plan.worst_case_dollars.toFixed(2)}`,
    ],
    [
      'worst time',
      plan.worst_case_seconds === null
        ? 'unlimited: set agent.wall_time_limit_seconds'
        : `${duration(plan.worst_case_seconds * 1000)} for the agents, without pulls and grading`,
    ],
    ['grading', plan.evaluate ? 'as predictions arrive' : 'off (--evaluate)'],
    ...forecastRows(plan),
  ];
  const instances = plan.instances.map((i) => [inert(i.instance_id), state(i.image), inert(i.image)]);
  return `${renderTerminal([{ kind: 'facts', rows }])}\n${table(['instance', 'is', 'image'], instances)}`;
}

/** Null: no limit holds it. A run budget may be overshot by one call of each slot. */
export function worstDollars({ arms, run, selected }: RunRequest): number | null {
  const limits = arms.map((a) => (isFreeName(modelNameOf(a.model)) ? 0 : a.agent.cost_limit || Infinity));
  const sum = limits.reduce((a, b) => a + b, 0) * selected.length * run.epochs;
  const worst = run.cost_limit > 0 ? Math.min(run.cost_limit, sum) : sum;
  return Number.isFinite(worst) ? worst : null;
}

/** Every trial takes all its time, the long ones last. */
export function worstSeconds({ arms, run, selected }: RunRequest): number | null {
  const limits = arms.map((a) => a.agent.wall_time_limit_seconds || Infinity);
  const all = limits.flatMap((limit) => Array.from({ length: selected.length * run.epochs }, () => limit));
  const worst = makespan(
    all.toSorted((a, b) => a - b),
    run.workers,
  );
  return Number.isFinite(worst) ? worst : null;
}
