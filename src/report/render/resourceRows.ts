/** What an arm took: money, tokens, steps, time. */

import { compact } from '../../base/compact.ts';
import { percent } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import type { CacheSaved } from '../measure/accounting.ts';
import type { ArmSummary } from '../measure/armSummary.ts';
import { type Block, block, type Fact } from './document.ts';
import { count, dollars, duration, money, plural } from './format.ts';

export function resourceRows(arm: ArmSummary): Fact[] {
  const a = arm.accounting;
  const per = a.costPerResolved;
  // Of a lower bound no interval is known.
  const interval = per?.atLeast ? undefined : per?.bootstrap?.interval;
  return compact<Fact>([
    [
      'cost',
      `${money(a.cost)} in ${plural(a.calls, 'model call')}${a.failedCalls ? ` (${a.failedCalls} failed)` : ''}`,
    ],
    !!a.lostCost.nano && ['', `of it ${money(a.lostCost)} on attempts that were tried again`],
    [
      'per resolved',
      per
        ? `${money(per)}${interval ? ` [${dollars(interval.low)}, ${dollars(interval.high)}] (bootstrap 95 %, seed ${per.bootstrap!.seed})` : ''}`
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
    arm.oomKills > 0 && ['memory', plural(arm.oomKills, 'kill')],
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

export function ledgerTables(arm: ArmSummary): Block[] {
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
