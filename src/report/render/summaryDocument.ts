/** A summary as blocks: the headline first, then where the rest went. */
import { formatCost } from '../../money.ts';
import type { GoldScore } from '../measure/gold.ts';
import { scoreText } from '../measure/score.ts';
import type { ArmSummary, Slice, Summary } from '../measure/summary.ts';
import type { PassEstimate } from '../statistics/epochs.ts';
import type { Block, Document } from './document.ts';
import { count, duration, money, percent, plural, range, rate } from './format.ts';

export function summaryDocument(summary: Summary): Document {
  const { dataset } = summary;
  return [
    { kind: 'heading', level: 1, text: `Run ${summary.run}` },
    {
      kind: 'facts',
      rows: [
        ['status', `${summary.status}${summary.imported ? ' (imported)' : ''}`],
        ['started', summary.createdAt],
        ...(summary.finishedAt ? [['finished', summary.finishedAt] as const] : []),
        [
          'dataset',
          `${dataset.source}${dataset.revision ? ` @ ${dataset.revision}` : ''} (${dataset.hash.slice(0, 12)})`,
        ],
        ...(summary.budgetNano === null ? [] : [['budget', formatCost(summary.budgetNano)] as const]),
      ],
    },
    ...(summary.longestFirst
      ? [
          {
            kind: 'warning',
            text: 'a biased sample: trials started longest first and not all are decided; long ones tend to be hard',
          } as const,
        ]
      : []),
    ...summary.arms.flatMap(armBlocks),
  ];
}

const named = (arm: ArmSummary): string => (arm.arm === arm.model ? arm.model : `${arm.arm} (${arm.model})`);

function armBlocks(arm: ArmSummary): Block[] {
  return [
    { kind: 'heading', level: 2, text: `Arm ${named(arm)}` },
    { kind: 'facts', rows: headline(arm) },
    ...warnings(arm),
    ...stratified(arm),
    ...passes(arm),
    {
      kind: 'heading',
      level: 3,
      text: 'By exit reason',
    },
    {
      kind: 'table',
      head: ['exit reason', 'class', 'trials', 'resolved of valid'],
      align: ['left', 'left', 'right', 'left'],
      rows: arm.byExitReason.map((r) => [r.reason, r.class, String(r.n), scoreText(r)]),
    },
    ...outcomes(arm),
    ...slices('By repository', 'repository', arm.byRepo),
    ...slices('By difficulty', 'difficulty', arm.byDifficulty),
    { kind: 'heading', level: 3, text: 'Money, tokens, time' },
    { kind: 'facts', rows: resources(arm) },
    ...ledger(arm),
    ...lists(arm),
  ];
}

function headline(arm: ArmSummary): [string, string][] {
  const rows: [string, string][] = [
    [
      'planned',
      arm.epochs > 1
        ? `${plural(arm.planned, 'trial')} (${plural(arm.instances, 'instance')} x ${arm.epochs} epochs)`
        : plural(arm.planned, 'trial'),
    ],
    ['valid', `${arm.valid}, coverage ${rate(arm.coverage)}`],
  ];
  if (!arm.graded) return [...rows, ['resolved', 'not graded']];
  if (arm.estimate) {
    const { mean, n, interval, newInstances, sameInstances } = arm.estimate;
    rows.push([
      'resolved',
      `${percent(mean)} ${range(interval)} mean of ${plural(n, 'instance')} (Wilson 95 %)`,
    ]);
    rows.push([
      'trials',
      `${arm.resolved.x} of ${arm.resolved.n} valid trials resolved; trials of one instance are no independent sample`,
    ]);
    rows.push([
      'noise',
      newInstances
        ? `new instances: SE ${(100 * newInstances.se).toFixed(1)} pp`
        : `new instances: unknown, ${n === 1 ? 'there is one' : 'all had the same result'}`,
    ]);
    rows.push([
      '',
      sameInstances && sameInstances.withinVariance === 0
        ? `same instances again: unknown, none changed over its epochs (n = ${sameInstances.n})`
        : sameInstances
          ? `same instances again: SE ${(100 * sameInstances.se).toFixed(1)} pp, one epoch ${(100 * sameInstances.oneEpochSd).toFixed(1)} pp (n = ${sameInstances.n})`
          : 'same instances again: unknown, no instance has two valid epochs',
    ]);
  } else rows.push(['resolved', `${rate(arm.resolved)} of valid (Wilson 95 %)`]);
  if (arm.gold) rows.push(['gold', goldLine(arm.gold)]);
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

function goldLine(gold: GoldScore): string {
  const unknown = gold.unknown > 0 ? `; ${plural(gold.unknown, 'instance')} not calibrated` : '';
  const bad = [
    ...(gold.fails.length ? [`fails ${gold.fails.length}`] : []),
    ...(gold.flaky.length ? [`is flaky on ${gold.flaky.length}`] : []),
  ];
  if (bad.length === 0) return `passes here on all ${gold.passes} that were calibrated${unknown}`;
  return `${bad.join(' and ')} of these instances on this machine; without them ${scoreText({ resolved: gold.resolvedWithout, overInstances: gold.estimateWithout })}${unknown}`;
}

function warnings(arm: ArmSummary): Block[] {
  const blocks: Block[] = arm.missing.map((m) => ({
    kind: 'warning',
    text: `${m.n} missing: ${WHY[m.why]}: ${someOf(m.ids)}`,
  }));
  return blocks;
}

const WHY: Record<string, string> = {
  infra: 'infrastructure failed, not the model (resume --retry infra)',
  config: 'the configuration stopped it',
  cancelled: 'interrupted (resume)',
  not_run: 'not run',
  running: 'still running',
  not_graded: 'not graded (evaluate)',
  grading_infra: 'grading failed for infrastructure reasons (evaluate again)',
  ungradable: 'cannot be graded',
};

const someOf = (ids: readonly string[]): string =>
  ids.length <= 5 ? ids.join(', ') : `${ids.slice(0, 5).join(', ')} and ${ids.length - 5} more`;

function stratified(arm: ArmSummary): Block[] {
  const s = arm.stratified;
  if (!s) return [];
  return [
    { kind: 'heading', level: 3, text: 'Estimate for the whole dataset (stratified)' },
    {
      kind: 'text',
      text: `${percent(s.p)} ${range(s.interval)}, n = ${s.n}, weights = stratum sizes${s.pooled ? `; ${plural(s.pooled, 'stratum', 'strata')} of one instance pooled for the error` : ''}`,
    },
    {
      kind: 'table',
      head: ['stratum', 'weight', 'size', 'valid', 'resolved'],
      align: ['left', 'right', 'right', 'right', 'right'],
      rows: s.strata.map((x) => [x.key, percent(x.weight), String(x.size), String(x.n), count(x.resolved)]),
    },
    ...(s.unseen.length
      ? [
          {
            kind: 'warning',
            text: `nothing valid in ${s.unseen.join(', ')}: the estimate does not speak for ${s.unseen.length === 1 ? 'it' : 'them'}`,
          } as const,
        ]
      : []),
  ];
}

function passes(arm: ArmSummary): Block[] {
  if (arm.passes.length === 0) return [];
  const cell = (x: PassEstimate) => `${percent(x.mean)} ${range(x.interval)} (n = ${x.n})`;
  return [
    { kind: 'heading', level: 3, text: 'Epochs' },
    {
      kind: 'table',
      head: ['k', 'pass@k [95 %]', 'pass^k [95 %]'],
      align: ['right', 'left', 'left'],
      rows: arm.passes.map((p) => [String(p.k), cell(p.passAtK), cell(p.passHatK)]),
    },
  ];
}

function outcomes(arm: ArmSummary): Block[] {
  if (arm.byOutcome.length === 0) return [];
  return [{ kind: 'text', text: `verdicts: ${arm.byOutcome.map((o) => `${o.outcome} ${o.n}`).join(', ')}` }];
}

function slices(title: string, column: string, rows: readonly Slice[]): Block[] {
  if (rows.length < 2 && rows[0]?.key === '(none)') return [];
  return [
    { kind: 'heading', level: 3, text: title },
    {
      kind: 'table',
      head: [column, 'planned', 'resolved of valid'],
      align: ['left', 'right', 'left'],
      rows: rows.map((r) => [r.key, String(r.planned), scoreText(r)]),
    },
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

function resources(arm: ArmSummary): [string, string][] {
  const a = arm.accounting;
  const per = a.costPerResolved;
  // Of a lower bound no interval is known.
  const interval = per?.atLeast ? undefined : per?.bootstrap?.interval;
  const dollars = (nano: number) => (Number.isFinite(nano) ? formatCost(Math.round(nano)) : 'unbounded');
  return [
    [
      'cost',
      `${money(a.cost)} in ${plural(a.calls, 'model call')}${a.failedCalls ? ` (${a.failedCalls} failed)` : ''}`,
    ],
    ...(a.lostCost.nano
      ? [['', `of it ${money(a.lostCost)} on attempts that were tried again`] as [string, string]]
      : []),
    [
      'per resolved',
      per
        ? `${money(per)}${interval ? ` [${dollars(interval.low)}, ${dollars(interval.high)}] (bootstrap 95 %, seed ${per.bootstrap!.seed})` : ''}`
        : '–',
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
    ['steps', `p50 ${count(arm.steps.p50 ?? 0)}, p95 ${count(arm.steps.p95 ?? 0)} (n = ${arm.steps.n})`],
    ['elapsed', `p50 ${duration(arm.elapsedMs.p50)}, p95 ${duration(arm.elapsedMs.p95)}`],
    ['working', `p50 ${duration(arm.workingMs.p50)}, p95 ${duration(arm.workingMs.p95)}`],
    ...(arm.phases.length
      ? [['phases', arm.phases.map((p) => `${p.name} ${duration(p.totalMs)}`).join(', ')] as [string, string]]
      : []),
    ...(arm.oomKills ? [['memory', plural(arm.oomKills, 'kill')] as [string, string]] : []),
  ];
}

function ledger(arm: ArmSummary): Block[] {
  const a = arm.accounting;
  if (a.byModel.length === 0) return [];
  return [
    {
      kind: 'table',
      head: ['answering model', 'calls', 'cost', 'input', 'cached', 'output'],
      align: ['left', 'right', 'right', 'right', 'right', 'right'],
      rows: a.byModel.map((m) => [
        m.model,
        String(m.calls),
        money(m.cost),
        count(m.tokens.input + m.tokens.cache_write),
        count(m.tokens.cache_read),
        count(m.tokens.output),
      ]),
    },
    {
      kind: 'table',
      head: ['token kind', 'tokens', 'at list price'],
      align: ['left', 'right', 'right'],
      rows: a.byTokenKind.map((k) => [
        k.kind,
        count(k.tokens),
        k.nano === null ? 'unknown' : formatCost(k.nano),
      ]),
    },
  ];
}

function lists(arm: ArmSummary): Block[] {
  const id = (x: { instanceId: string; epoch: number }) =>
    arm.epochs > 1 ? `${x.instanceId} #${x.epoch}` : x.instanceId;
  const table = (title: string, column: string, rows: string[][]): Block[] =>
    rows.length
      ? [
          { kind: 'heading', level: 3, text: title },
          { kind: 'table', head: ['instance', column], align: ['left', 'left'], rows },
        ]
      : [];
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
    ...(arm.gold?.fails.length
      ? [{ kind: 'ids', label: 'Gold fails here', ids: arm.gold.fails } as const]
      : []),
    ...(arm.gold?.flaky.length
      ? [{ kind: 'ids', label: 'Gold is flaky here', ids: arm.gold.flaky } as const]
      : []),
    ...(arm.stalled.length ? [{ kind: 'ids', label: 'Stalled', ids: arm.stalled } as const] : []),
    ...(arm.refused.length
      ? [{ kind: 'ids', label: 'Refused by the model', ids: arm.refused } as const]
      : []),
    ...(arm.retried.trials
      ? [{ kind: 'ids', label: 'Tried more than once', ids: arm.retried.ids } as const]
      : []),
  ];
}
