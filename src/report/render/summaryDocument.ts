/** A summary as blocks: the headline first, then where the rest went. */

import { compact } from '../../base/compact.ts';
import { percent } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import type { ArmSummary } from '../measure/armSummary.ts';
import type { Slice } from '../measure/breakdown.ts';
import { scoreText } from '../measure/score.ts';
import type { Summary } from '../measure/summary.ts';
import type { Missing } from '../measure/verdict.ts';
import type { PassEstimate } from '../statistics/epochs.ts';
import { type Block, block, type Document } from './document.ts';
import { count, duration, money, plural, range } from './format.ts';
import { headlineRows } from './headlineRows.ts';
import { ledgerTables, resourceRows } from './resourceRows.ts';

export function summaryDocument(summary: Summary): Document {
  const { dataset } = summary;
  return compact([
    block.heading(1, `Run ${summary.run}`),
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
    ...summary.arms.flatMap(armBlocks),
  ]);
}

const named = (arm: ArmSummary): string => (arm.arm === arm.model ? arm.model : `${arm.arm} (${arm.model})`);

function armBlocks(arm: ArmSummary): Block[] {
  return [
    block.heading(2, `Arm ${named(arm)}`),
    block.facts(headlineRows(arm)),
    ...arm.missing.map((m) => block.warning(`${m.n} missing: ${WHY[m.why]}: ${someOf(m.ids)}`)),
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
  const cell = (x: PassEstimate) => `${percent(x.mean)} ${range(x.interval)} (n = ${x.n})`;
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
    ...(arm.doubted ?? []).flatMap(({ label, ids }) => named(`Left out: those ${label}`, ids)),
    ...named('Stalled', arm.stalled),
    ...named('Refused by the model', arm.refused),
    ...named('Submitted nothing, with changes in the work tree (run.patch decides)', arm.unusedWork),
    ...named('Tried more than once', arm.retried.ids),
  ];
}
