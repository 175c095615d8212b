/** A summary as blocks: the headline first, then where the rest went. */
import { formatCost } from '../../money.ts';
import type { ArmSummary } from '../measure/armSummary.ts';
import type { Slice } from '../measure/breakdown.ts';
import { scoreText } from '../measure/score.ts';
import type { Summary } from '../measure/summary.ts';
import type { Missing } from '../measure/verdict.ts';
import type { PassEstimate } from '../statistics/epochs.ts';
import type { Block, Document } from './document.ts';
import { count, duration, money, percent, plural, range } from './format.ts';
import { headlineRows } from './headlineRows.ts';
import { ledgerTables, resourceRows } from './resourceRows.ts';

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
    { kind: 'facts', rows: headlineRows(arm) },
    ...warnings(arm),
    ...stratified(arm),
    ...passes(arm),
    { kind: 'heading', level: 3, text: 'By exit reason' },
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
    { kind: 'facts', rows: resourceRows(arm) },
    ...ledgerTables(arm),
    ...lists(arm),
  ];
}

const warnings = (arm: ArmSummary): Block[] =>
  arm.missing.map((m) => ({
    kind: 'warning',
    text: `${m.n} missing: ${WHY[m.why]}: ${someOf(m.ids)}`,
  }));

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
  const named = (label: string, ids: readonly string[] = []): Block[] =>
    ids.length ? [{ kind: 'ids', label, ids }] : [];
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
    ...named('Stalled', arm.stalled),
    ...named('Refused by the model', arm.refused),
    ...named('Tried more than once', arm.retried.ids),
  ];
}
