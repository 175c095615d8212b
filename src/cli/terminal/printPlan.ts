/** `run --dry-run` as a person reads it: what would run, what it needs, and what it can show. */

import { comingText, isMadeHere } from '../../base/imageReference.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { gigabytes } from '../../base/text/units.ts';
import { formatCost } from '../../money.ts';
import { type Forecast, type Range, USUAL_DISCORDANCE } from '../../report/measure/forecast.ts';
import { duration, toJson } from '../../report/render/document.ts';
import { renderTerminal } from '../../report/render/renderers.ts';
import { agentLine } from '../../run/plan/agentOrigins.ts';
import { type DryRun, instancesPlanned } from '../../run/plan/dryRun.ts';
import type { DiskAnswer, DiskPlan } from '../../run/plan/planDisk.ts';
import type { Plan } from '../../run/plan.ts';
import { shardName } from '../../store/records/runs.ts';
import { EXIT, printData, printJson } from './context.ts';
import { documentWidth, tableBlocks } from './table.ts';

type Rows = [string, string][];

export function printPlan(plan: DryRun, { selected }: Plan['request'], json: boolean): number {
  if (json) printJson(toJson(plan));
  else for (const part of textOf(plan, selected)) printData(part);
  return EXIT.done;
}

/** Only an address that a variable names: what the name of the model says needs no row. */
const addressRow = ({ name, address, addressFrom }: DryRun['arms'][number]): Rows =>
  addressFrom === null ? [] : [['asks', `${name}: ${inert(address ?? '')} (from $${addressFrom})`]];

/** One line for all arms whose agents go by the same. */
function agentRows({ arms, replacedBy }: DryRun): Rows {
  const lines = new Set(arms.map(({ origins }) => agentLine(origins)));
  const replaced = replacedBy === null ? '' : `; ${replacedBy} replaces the default configuration`;
  return lines.size === 1
    ? [['agent', `${inert([...lines][0]!)}${inert(replaced)}`]]
    : arms.map(({ name, origins }) => ['agent', inert(`${name}: ${agentLine(origins)}${replaced}`)]);
}

const shardRows = ({ shard, instances }: DryRun): Rows =>
  shard === null
    ? []
    : [
        [
          'shard',
          `${shardName(shard)}: ${instances.length} of ${plural(shard.instances, 'instance')} (${shard.number + shard.of > shard.instances ? `number ${shard.number}` : `numbers ${shard.number}, ${shard.number + shard.of}, …`}); budget, rpm and tpm are of this shard alone`,
        ],
      ];

function* textOf(plan: DryRun, selected: Plan['request']['selected']): Generator<string> {
  const state = imageStates(plan.imagePlan);
  const arms = plan.arms.map(
    (a) =>
      `${a.name} (${a.model}, ${a.stepLimit || 'no'} steps, ${a.costLimit ? `$${a.costLimit}` : 'no cost limit'})`,
  );
  const rows: Rows = [
    ['run', `${plan.runId} (dry run: nothing is started)`],
    ['dataset', `${plan.dataset}${plan.revision ? ` @ ${plan.revision}` : ''}`],
    ...shardRows(plan),
    ['arms', arms.join(', ')],
    ...agentRows(plan),
    ...plan.arms.flatMap(addressRow),
    [
      'trials',
      `${plural(selected.length, 'instance')} x ${plural(plan.arms.length, 'arm')} x ${plural(plan.epochs, 'epoch')} = ${plan.trials}, on ${plural(plan.slots, 'slot')}`,
    ],
    ...diskRows(plan.images, plan.imagePlan),
    [
      'worst cost',
      plan.worstCaseDollars === null
        ? 'unlimited: set agent.cost_limit or --cost-limit'
        : `$${plan.worstCaseDollars.toFixed(2)}`,
    ],
    [
      'worst time',
      plan.worstCaseSeconds === null
        ? 'unlimited: set agent.wall_time_limit_seconds'
        : `${duration(plan.worstCaseSeconds * 1000)} for the agents, without pulls and grading`,
    ],
    ['grading', plan.evaluate ? 'as predictions arrive' : 'off (--evaluate)'],
    ...forecastRows(plan),
  ];
  const instances = {
    *[Symbol.iterator]() {
      for (const i of instancesPlanned(selected)) yield [inert(i.instanceId), state(i.image), inert(i.image)];
    },
  };
  yield `${renderTerminal([{ kind: 'facts', rows }], documentWidth())}\n`;
  yield* tableBlocks(['instance', 'is', 'image'], instances);
}

export function diskRows(total: number, answer: DiskAnswer | null): Rows {
  if (answer === null) return [['images', 'none needed: no arm runs in Docker']];
  if ('problem' in answer) return [['images', `${total}; ${answer.problem}`]];
  return rowsOf(total, answer);
}

function rowsOf(total: number, plan: DiskPlan): Rows {
  const { here, toPull, unknown, downloadBytes, diskBytes, estimated, freeBytes } = plan;
  const problems = Map.groupBy(unknown, (u) => u.problem);
  const free = freeBytes === null ? '' : `; ${gigabytes(freeBytes)} free`;
  const guess = estimated > 0 ? `, estimated from ${toPull.length - estimated} images` : '';
  const partly = `${guess}${unknown.length ? ', without those not known' : ''}`;
  return [
    [
      'images',
      `${total}: ${here} here, ${comingText(toPull)}${unknown.length ? `, ${unknown.length} not known` : ''}`,
    ],
    ...[...problems].map(([problem, list]): [string, string] => [
      '',
      `${problem}: ${list[0]!.image}${list.length > 1 ? ` and ${list.length - 1} more` : ''}`,
    ]),
    [
      'disk',
      downloadBytes === 0
        ? `${unknown.length ? 'not known' : 'nothing to download'}${free}`
        : `${gigabytes(downloadBytes)} to download, about ${gigabytes(diskBytes)} unpacked${partly}${free}`,
    ],
    ...(plan.tooMuch === null ? [] : [['', plan.tooMuch] as [string, string]]),
    ...(plan.pullSeconds === null
      ? []
      : [
          [
            'pulls',
            `images.pulls_per_window makes the pulls take at least ${duration(plan.pullSeconds * 1000)}, in addition to the times below`,
          ] as [string, string],
        ]),
  ];
}

/** "here", "pull", "build" or "?" of each image, for the list of instances. */
function imageStates(answer: DiskAnswer | null): (image: string) => string {
  if (answer === null || 'problem' in answer) return () => '?';
  const coming = new Set(answer.toPull);
  const unknown = new Set(answer.unknown.map((u) => u.image));
  return (image) =>
    unknown.has(image) ? '?' : !coming.has(image) ? 'here' : isMadeHere(image) ? 'build' : 'pull';
}

/** Which parts the forecast of time includes. */
function holds({ grading, pulls }: Forecast['timeHolds']): string {
  const parts = [
    ['grading', grading],
    ['pulls', pulls],
  ] as const;
  const names = (wanted: boolean) => parts.flatMap(([name, is]) => (is === wanted ? [name] : []));
  const [known, unknown] = [names(true), names(false)];
  return [
    ...(known.length ? [`with ${known.join(' and ')}`] : []),
    ...(unknown.length ? [`without ${unknown.join(' and ')}, for which there is no history`] : []),
  ].join(', ');
}

/** The fewest attempts: with fewer on record the interval holds 76 to 86 % for 90. */
const FEW_ATTEMPTS = 200;

function forecastRows({
  forecast: found,
  detectableDifference,
}: Pick<DryRun, 'forecast' | 'detectableDifference'>): Rows {
  const { costNano: cost, timeMs: time, basis, timeHolds } = found;
  const beside = time ? holds(timeHolds) : '';
  const from = `from ${basis.attempts} past attempts (${basis.instance} trials by instance, ${basis.repo} by repository, ${basis.any} by model)`;
  const range = (x: Range, show: (value: number) => string) =>
    `${show(x.middle)} [${show(x.low)}, ${show(x.high)}]`;
  return [
    [
      'forecast',
      cost || time
        ? `${[...(cost ? [range(cost, formatCost)] : []), ...(time ? [range(time, duration)] : [])].join(', ')} (${basis.attempts < FEW_ATTEMPTS ? 'rough: few attempts are known' : '90 %'})${beside && ` ${beside}`}, ${from}`
        : `none: no history of ${basis.none === 0 ? 'these trials' : `the model for ${basis.none} trials`} in this results root`,
    ],
    ...(detectableDifference === null
      ? []
      : [
          [
            'detectable',
            `${(100 * detectableDifference).toFixed(1)} points against another run of these instances (80 % power, ${100 * USUAL_DISCORDANCE} % discordant); smaller differences will not be detected`,
          ] as [string, string],
        ]),
  ];
}
