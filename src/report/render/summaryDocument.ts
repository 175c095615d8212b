/** A summary as blocks: the headline first, then where the rest went. */

import { compact } from '../../base/compact.ts';
import { percent, plural } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import { partOfWhole, shardName } from '../../store/records/runs.ts';
import { type GivenVerdict, verdictHeading } from '../gate/verdictWords.ts';
import type { CacheSaved } from '../measure/accounting.ts';
import { armWithAgent } from '../measure/runFacts.ts';
import type { RewardSummary } from '../measure/score.ts';
import { type Missing, scoreText } from '../measure/score.ts';
import type { ArmSummary, Slice, Summary } from '../measure/summary.ts';
import type { EpochEstimate } from '../statistics/epochs.ts';
import {
  type Block,
  block,
  count,
  type Document,
  dollars,
  dollarsWithin,
  duration,
  type Fact,
  money,
  NAMES_SHOWN,
  range,
  rate,
  reward,
} from './document.ts';

/** The verdict of a night stands first. `verdicts`: of its arms. */
export function summaryDocument(
  summary: Summary,
  verdicts: readonly (GivenVerdict & { readonly arm: string })[] = [],
): Document {
  const { dataset } = summary;
  const labelOf = (arm: string) => (summary.arms.length > 1 ? `${summary.run}/${arm}` : summary.run);
  return compact([
    ...verdicts.map((given) => block.heading(1, verdictHeading(given, labelOf(given.arm)))),
    block.heading(1, `Run ${summary.run}${summary.shard ? `, shard ${shardName(summary.shard)}` : ''}`),
    summary.shard && block.warning(partOfWhole(summary.shard)),
    block.facts(
      compact([
        ['status', `${summary.status}${summary.imported ? ' (imported)' : ''}`],
        ['started', summary.createdAt],
        summary.finishedAt !== null && ['finished', summary.finishedAt],
        [
          'dataset',
          `${dataset.source}${dataset.revision ? ` @ ${dataset.revision}` : ''} (${dataset.hash.slice(0, 12)})`,
        ],
        summary.budgetNano !== null && ['budget', formatCost(summary.budgetNano)],
      ]),
    ),
    summary.longestFirst &&
      block.warning(
        'a biased sample: trials started longest first and not all are decided; long ones tend to be hard',
      ),
    ...summary.arms.flatMap((arm) => armBlocks(arm, summary.imported)),
  ]);
}

function armBlocks(arm: ArmSummary, imported: boolean): Block[] {
  // A run of somebody else does not go on here.
  const why = imported ? { ...WHY, ...WHY_IMPORTED } : WHY;
  return [
    block.heading(2, `Arm ${armWithAgent(arm)}`),
    block.facts(headlineRows(arm)),
    ...arm.missing.map((m) => block.warning(`${m.n} missing: ${why[m.why]}: ${someOf(m.ids)}`)),
    ...stratified(arm),
    ...passes(arm),
    block.heading(3, 'By exit reason'),
    block.table(
      ['exit reason', 'class', 'trials', 'resolved of valid'],
      arm.byExitReason.map((r) => [r.reason, r.class, String(r.n), scoreText(r)]),
      ['trials'],
    ),
    ...outcomes(arm),
    ...slices('By repository', 'repository', arm.byRepo),
    ...slices('By difficulty', 'difficulty', arm.byDifficulty),
    block.heading(3, 'Money, tokens, time'),
    block.facts(resourceRows(arm)),
    ...ledgerTables(arm),
    ...lists(arm),
  ];
}

const WHY: Record<Missing, string> = {
  infra: 'infrastructure failed, not the model (resume --retry infra)',
  config: 'the configuration stopped it',
  cancelled: 'interrupted (resume)',
  not_run: 'not run',
  running: 'still running',
  not_graded: 'not graded (evaluate)',
  grading_infra: 'grading failed for infrastructure reasons (evaluate again)',
  ungradable: 'cannot be graded',
};
const WHY_IMPORTED: Partial<typeof WHY> = {
  infra: 'infrastructure failed, not the model',
  cancelled: 'interrupted',
};

const someOf = (ids: readonly string[]): string =>
  ids.length <= 5 ? ids.join(', ') : `${ids.slice(0, 5).join(', ')} and ${ids.length - 5} more`;

function stratified(arm: ArmSummary): Block[] {
  const s = arm.stratified;
  if (!s) return [];
  return compact([
    block.heading(3, 'Estimate for the whole dataset (stratified)'),
    block.text(
      `${percent(s.p)} ${s.interval ? range(s.interval) : '(no interval: a single instance stands for more than a quarter of the dataset; take a larger sample)'}, n = ${s.n}, weights = stratum sizes${s.pooled ? `; ${plural(s.pooled, 'stratum', 'strata')} of one instance pooled for the error` : ''}`,
    ),
    block.table(
      ['stratum', 'weight', 'size', 'valid', 'resolved'],
      s.strata.map((x) => [x.key, percent(x.weight), String(x.size), String(x.n), count(x.resolved)]),
      ['weight', 'size', 'valid', 'resolved'],
    ),
    s.unseen.length > 0 &&
      block.warning(
        `nothing valid in ${s.unseen.join(', ')}: the estimate does not speak for ${s.unseen.length === 1 ? 'it' : 'them'}`,
      ),
  ]);
}

function passes(arm: ArmSummary): Block[] {
  if (arm.passes.length === 0) return [];
  const cell = (x: ArmSummary['passes'][number]['passAtK']) =>
    `${percent(x.mean)} ${range(x.interval)} (n = ${x.n})`;
  return [
    block.heading(3, 'Epochs'),
    block.table(
      ['k', 'pass@k [95 %]', 'pass^k [95 %]'],
      arm.passes.map((p) => [String(p.k), cell(p.passAtK), cell(p.passHatK)]),
      ['k'],
    ),
  ];
}

function outcomes(arm: ArmSummary): Block[] {
  if (arm.byOutcome.length === 0) return [];
  return [block.text(`verdicts: ${arm.byOutcome.map((o) => `${o.outcome} ${o.n}`).join(', ')}`)];
}

function slices(title: string, column: string, rows: readonly Slice[]): Block[] {
  if (rows.length < 2 && rows[0]?.key === '(none)') return [];
  return [
    block.heading(3, title),
    block.table(
      [column, 'planned', 'resolved of valid'],
      rows.map((r) => [r.key, String(r.planned), scoreText(r)]),
      ['planned'],
    ),
    {
      kind: 'bars',
      title: `${title}: resolved of valid, 95 % interval`,
      max: 1,
      bars: rows.flatMap((r) => {
        const p = r.overInstances?.mean ?? r.resolved.p;
        const interval = r.overInstances?.interval ?? r.resolved.interval;
        return p === null || interval === null
          ? []
          : [{ label: r.key, value: p, ...interval, text: scoreText(r) }];
      }),
    },
  ];
}

function lists(arm: ArmSummary): Block[] {
  const id = (x: { instanceId: string; epoch: number }) =>
    arm.epochs > 1 ? `${x.instanceId} #${x.epoch}` : x.instanceId;
  const table = (title: string, column: string, rows: string[][]): Block[] =>
    rows.length ? [block.heading(3, title), block.table(['instance', column], rows)] : [];
  const named = (label: string, ids: readonly string[] = []): Block[] =>
    ids.length ? [block.ids(label, ids)] : [];
  return [
    ...table(
      'Dearest',
      'cost',
      arm.accounting.dearest.map((d) => [id(d), money(d.cost)]),
    ),
    ...table(
      'Slowest',
      'elapsed',
      arm.slowest.map((s) => [id(s), `${duration(s.value)} (${s.why})`]),
    ),
    ...table(
      'Flagged',
      'rules',
      arm.flagged.trials.map((f) => [id(f), f.rules.join(', ')]),
    ),
    ...named('Gold fails here', arm.gold?.fails),
    ...named('Gold is flaky here', arm.gold?.flaky),
    ...named('Passes here without any work', arm.gold?.untouched),
    ...(arm.doubted ?? []).flatMap(({ label, ids }) => named(`Left out: those ${label}`, ids)),
    ...named('Stalled', arm.stalled),
    ...named('Refused by the model', arm.refused),
    ...named(
      'Ended on an error of the provider that is not known here: it counts against nobody, `show` has its words',
      arm.unknownErrors,
    ),
    ...named(
      'Submitted nothing, with changes in the work tree, which are captured (run.patch decides)',
      arm.unusedWork,
    ),
    ...named('Tried more than once', arm.retried.ids),
  ];
}

function headlineRows(arm: ArmSummary): Fact[] {
  const rows: Fact[] = [
    [
      'planned',
      arm.epochs > 1
        ? `${plural(arm.planned, 'trial')} (${plural(arm.instances, 'instance')} x ${arm.epochs} epochs)`
        : plural(arm.planned, 'trial'),
    ],
    ['valid', `${arm.valid}, coverage ${rate(arm.coverage)}`],
  ];
  if (arm.leftOut !== undefined)
    rows.push(['left out', `${plural(arm.leftOut, 'task')} that cannot run here (--skip-unsupported)`]);
  if (!arm.graded) return [...rows, ['resolved', 'not graded']];
  if (arm.estimate) rows.push(...epochRows(arm, arm.estimate));
  else rows.push(['resolved', `${rate(arm.resolved)} of valid (Wilson 95 %)`]);
  if (arm.reward) rows.push(...rewardRows(arm.reward));
  if (arm.gold) rows.push(['gold', goldLine(arm.gold)]);
  for (const { label, ids, resolvedWithout, estimateWithout } of arm.doubted ?? [])
    rows.push([
      'without',
      `${plural(ids.length, 'instance')} ${label}: ${scoreText({ resolved: resolvedWithout, overInstances: estimateWithout })}`,
    ]);
  if (arm.bounds && arm.valid < arm.planned)
    rows.push([
      'bounds',
      `${percent(arm.bounds.worst)} if all ${arm.planned - arm.valid} missing failed, ${percent(arm.bounds.best)} if all resolved (n = ${arm.planned})`,
    ]);
  if (arm.resolvedStrict && arm.resolvedStrict.x !== arm.resolved.x)
    rows.push([
      'strict',
      `${scoreText({ resolved: arm.resolvedStrict, overInstances: arm.estimateStrict })} without what spoofing or changed tests may have won`,
    ]);
  if (arm.firstAttempt)
    rows.push([
      'first attempt',
      `${scoreText(arm.firstAttempt)} before ${plural(arm.firstAttempt.redone, 'result')} ${arm.firstAttempt.redone === 1 ? 'was' : 'were'} tried again: no pass@1`,
    ]);
  const flagged = arm.flagged.trials.length;
  if (flagged > 0)
    rows.push([
      'flagged',
      `${plural(flagged, 'attempt')}; without them ${scoreText({ resolved: arm.flagged.resolvedWithout, overInstances: arm.flagged.estimateWithout })}`,
    ]);
  return rows;
}

function rewardRows({ mean, interval, n, missingAsZero, named = [] }: RewardSummary): Fact[] {
  const rows: Fact[] = [
    [
      'reward',
      `${reward(mean)} [${reward(interval.low)}, ${reward(interval.high)}] mean of ${plural(n, 'instance')} (Wilson 95 %)`,
    ],
  ];
  if (missingAsZero)
    rows.push([
      '',
      `${reward(missingAsZero.mean)} with ${compact([
        (missingAsZero.missing > 0 || !missingAsZero.unnamed) &&
          plural(missingAsZero.missing, 'missing trial'),
        missingAsZero.unnamed && `${plural(missingAsZero.unnamed, 'trial')} without the name "reward"`,
      ]).join(' and ')} as 0, as Harbor counts`,
    ]);
  for (const one of named.slice(0, NAMES_SHOWN))
    rows.push(['', `${one.name}: ${reward(one.mean)} mean of ${plural(one.n, 'instance')}`]);
  if (named.length > NAMES_SHOWN)
    rows.push(['', `and ${plural(named.length - NAMES_SHOWN, 'further name')}`]);
  return rows;
}

/** With epochs the mean over instances is the headline, and how much it may move stands beside it. */
function epochRows({ resolved }: ArmSummary, estimate: EpochEstimate): Fact[] {
  const { mean, n, interval, newInstances, sameInstances } = estimate;
  return [
    ['resolved', `${percent(mean)} ${range(interval)} mean of ${plural(n, 'instance')} (Wilson 95 %)`],
    [
      'trials',
      `${resolved.x} of ${resolved.n} valid trials resolved; trials of one instance are no independent sample`,
    ],
    [
      'noise',
      newInstances
        ? `new instances: SE ${(100 * newInstances.se).toFixed(1)} pp`
        : `new instances: unknown, ${n === 1 ? 'there is one' : 'all had the same result'}`,
    ],
    [
      '',
      sameInstances && sameInstances.withinVariance === 0
        ? `same instances again: unknown, none changed over its epochs (n = ${sameInstances.n})`
        : sameInstances
          ? `same instances again: SE ${(100 * sameInstances.se).toFixed(1)} pp, one epoch ${(100 * sameInstances.oneEpochSd).toFixed(1)} pp (n = ${sameInstances.n})`
          : 'same instances again: unknown, no instance has two valid epochs',
    ],
  ];
}

function goldLine(gold: NonNullable<ArmSummary['gold']>): string {
  const unknown = gold.unknown > 0 ? `; ${plural(gold.unknown, 'instance')} not calibrated` : '';
  const bad = compact([
    gold.fails.length > 0 && `fails ${gold.fails.length}`,
    gold.flaky.length > 0 && `is flaky on ${gold.flaky.length}`,
    gold.untouched && `means nothing on ${gold.untouched.length}, which pass untouched,`,
  ]);
  if (bad.length === 0) return `passes here on all ${gold.passes} that were calibrated${unknown}`;
  return `${bad.join(' and ')} of these instances on this machine; without them ${scoreText({ resolved: gold.resolvedWithout, overInstances: gold.estimateWithout })}${unknown}`;
}

function resourceRows(arm: ArmSummary): Fact[] {
  const a = arm.accounting;
  const per = a.costPerResolved;
  // Of a lower bound no interval is known.
  const interval = per?.atLeast ? undefined : per?.bootstrap?.interval;
  const inDigits = dollarsWithin(interval ?? null);
  return compact<Fact>([
    [
      'cost',
      `${money(a.cost)} in ${plural(a.calls, 'model call')}${a.failedCalls ? ` (${a.failedCalls} failed)` : ''}`,
    ],
    !!a.lostCost.nano && ['', `of it ${money(a.lostCost)} on attempts that were tried again`],
    [
      'per resolved',
      per
        ? interval
          ? `${inDigits(per.nano!)} [${inDigits(interval.low)}, ${inDigits(interval.high)}] (bootstrap 95 %, seed ${per.bootstrap!.seed})`
          : money(per)
        : '–',
    ],
    !!a.awaitingVerdict && [
      '',
      `without ${plural(a.awaitingVerdict.trials, 'trial')} that ${a.awaitingVerdict.trials === 1 ? 'has' : 'have'} no verdict yet (${money(a.awaitingVerdict.cost)})`,
    ],
    [
      'per trial',
      a.perTrial.p50 === null
        ? '–'
        : `p50 ${dollars(a.perTrial.p50)}, p95 ${dollars(a.perTrial.p95!)} (n = ${a.perTrial.n})`,
    ],
    [
      'tokens',
      `input ${count(a.tokens.input)}, cache read ${count(a.tokens.cache_read)}, cache write ${count(a.tokens.cache_write)}, output ${count(a.tokens.output)} (reasoning ${count(a.tokens.reasoning)})`,
    ],
    [
      'cached',
      a.cachedShare === null
        ? '–'
        : `${percent(a.cachedShare)} of ${count(a.tokens.input + a.tokens.cache_read + a.tokens.cache_write)} input tokens`,
    ],
    ...savedRows(a.cacheSaved),
    ['steps', `p50 ${count(arm.steps.p50 ?? 0)}, p95 ${count(arm.steps.p95 ?? 0)} (n = ${arm.steps.n})`],
    ['elapsed', `p50 ${duration(arm.elapsedMs.p50)}, p95 ${duration(arm.elapsedMs.p95)}`],
    ['working', `p50 ${duration(arm.workingMs.p50)}, p95 ${duration(arm.workingMs.p95)}`],
    arm.phases.length > 0 && ['phases', arm.phases.map((p) => `${p.name} ${duration(p.totalMs)}`).join(', ')],
    arm.oomKills > 0 && [
      'memory',
      `${plural(arm.oomKills, 'kill')} by the memory limit (environment.memory)`,
    ],
  ]);
}

function savedRows(saved: CacheSaved | undefined): Fact[] {
  if (!saved) return [];
  const { nano, share } = saved;
  if (nano === null) return [['saved by cache', 'unknown: no price is known']];
  if (nano < 0)
    return [['saved by cache', `nothing: writing to it cost ${formatCost(-nano)} more than reading saved`]];
  return [
    [
      'saved by cache',
      `${formatCost(nano)} at list price${share === null ? '' : `, ${percent(share)} of what the input costs without`}`,
    ],
  ];
}

function ledgerTables(arm: ArmSummary): Block[] {
  const a = arm.accounting;
  if (a.byModel.length === 0) return [];
  return [
    block.table(
      ['answering model', 'calls', 'cost', 'input', 'cached', 'output'],
      a.byModel.map((m) => [
        m.model,
        String(m.calls),
        money(m.cost),
        count(m.tokens.input + m.tokens.cache_write),
        count(m.tokens.cache_read),
        count(m.tokens.output),
      ]),
      ['calls', 'cost', 'input', 'cached', 'output'],
    ),
    block.table(
      ['token kind', 'tokens', 'at list price'],
      a.byTokenKind.map((k) => [k.kind, count(k.tokens), formatCost(k.nano)]),
      ['tokens', 'at list price'],
    ),
  ];
}
