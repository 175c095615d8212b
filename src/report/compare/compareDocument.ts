/** A comparison as blocks: what confounds it first, then the paired difference, then who changed. */
import { formatCost } from '../../money.ts';
import type { FactDifference } from '../measure/runFacts.ts';
import type { Block, Document } from '../render/document.ts';
import { percent, plural, pointDifference, pValue, range, rate } from '../render/format.ts';
import { isNoSpread } from '../statistics/means.ts';
import type { Bootstrapped } from '../statistics/resampling.ts';
import type { Comparisons } from './compareAll.ts';
import type { Comparison } from './compareSides.ts';

export function compareDocument(all: Comparisons): Document {
  const several = all.comparisons.length > 1;
  return [
    { kind: 'heading', level: 1, text: `Compare ${all.sides.join(' with ')}` },
    ...(several ? overview(all) : []),
    ...all.comparisons.flatMap((c) => pairBlocks(c, several ? c.pHolm : null, several)),
  ];
}

function overview(all: Comparisons): Block[] {
  const q = all.omnibus;
  return [
    ...(q
      ? [
          {
            kind: 'text',
            text: `Are all equal? Cochran Q = ${q.statistic.toFixed(2)}, df = ${q.df}, ${pValue(q.p)}, n = ${q.n}`,
          } as const,
        ]
      : []),
    {
      kind: 'table',
      head: ['pair', 'n', 'difference (B - A)', 'p (Holm)'],
      align: ['left', 'right', 'left', 'right'],
      rows: all.comparisons.map((c) => [
        `${c.a.label} → ${c.b.label}`,
        String(c.matched),
        c.difference ? pointDifference(c.difference.points, c.difference.interval) : '–',
        c.pHolm === null ? '–' : pValue(c.pHolm).replace('p = ', '').replace('p ', ''),
      ]),
    },
  ];
}

const NOT_COMPARABLE_SHOWN = 12;

function pairBlocks(c: Comparison, pHolm: number | null, several: boolean): Block[] {
  return [
    ...(several ? [{ kind: 'heading', level: 2, text: `${c.a.label} → ${c.b.label}` } as const] : []),
    ...c.warnings.map((text) => ({ kind: 'warning', text }) as const),
    ...confounds(c.differences),
    { kind: 'facts', rows: facts(c, pHolm) },
    ...resourceTable(c),
    { kind: 'ids', label: 'Broken', ids: c.broken },
    { kind: 'ids', label: 'Fixed', ids: c.fixed },
    ...(c.mixed.length ? [{ kind: 'ids', label: 'Mixed over epochs', ids: c.mixed } as const] : []),
    {
      kind: 'text',
      text: `Both resolved ${c.both.length}, neither ${c.neither.length + c.unnamedNeither}.`,
    },
    { kind: 'ids', label: 'Both', ids: c.both, onTerminal: 0 },
    { kind: 'ids', label: 'Neither', ids: c.neither, onTerminal: 0 },
    ...[...Map.groupBy(c.notComparable, (x) => x.why)].map(
      ([why, group]): Block => ({
        kind: 'ids',
        label: `Not comparable, ${why.replaceAll('_', ' ')}`,
        ids: group.map((x) => x.instanceId),
        onTerminal: NOT_COMPARABLE_SHOWN,
      }),
    ),
    ...(c.conditionsUnknown.length
      ? [
          {
            kind: 'text',
            text: `${c.conditionsUnknown.join(' and ')}: what is there does not say limits, prompts and resources; they were not held against each other.`,
          } as const,
        ]
      : []),
    ...quiet(c.differences),
  ];
}

function facts(c: Comparison, pHolm: number | null): [string, string][] {
  const score = (s: Comparison['a']) =>
    s.epochs > 1 && s.meanResolved !== null
      ? `${percent(s.meanResolved)}${s.meanInterval ? ` ${range(s.meanInterval)}` : ''} mean of ${plural(s.resolved.n, 'instance')} x ${s.epochs} epochs`
      : rate(s.resolved);
  const named = (s: Comparison['a']) =>
    `${s.label}${s.model && s.model !== s.label ? ` (${s.model})` : ''}: ${score(s)}`;
  const fell = c.fellOut.map((f) => `${f.why.replaceAll('_', ' ')} ${f.n}`).join(', ');
  const rows: [string, string][] = [
    ['A', named(c.a)],
    ['B', named(c.b)],
    [
      'matched',
      `${c.matched}${c.partly.length ? ` (${c.partly.length} with fewer valid epochs than planned)` : ''}${c.notComparable.length ? `; not comparable ${c.notComparable.length} (${fell})` : ''}`,
    ],
  ];
  if (!c.difference || !c.test) return rows;
  rows.push([
    'B - A',
    `${pointDifference(c.difference.points, c.difference.interval)} (paired, n = ${c.matched}, ${c.difference.method} 95 %)`,
  ]);
  rows.push([
    'test',
    `${c.test.name} ${pValue(c.test.p)}${pHolm === null ? '' : `, Holm ${pValue(pHolm)}`}: ${c.fixed.length} fixed, ${c.broken.length} broken`,
  ]);
  if (c.reference.permutation && c.reference.t && !isNoSpread(c.reference.t.se))
    rows.push(['', `t(${c.reference.t.df}) = ${c.reference.t.t.toFixed(2)}, ${pValue(c.reference.t.p)}`]);
  rows.push([
    'detectable',
    c.detectable === null
      ? c.matched < 2
        ? 'one instance shows nothing about the next'
        : 'no instance differs: nothing to estimate it from'
      : `${(100 * c.detectable).toFixed(1)} pp with 80 % power (n = ${c.matched}${c.discordance === null ? '' : `, ${percent(c.discordance)} discordant`}); smaller differences stay unseen`,
  ]);
  if (c.sensitivity && (c.sensitivity.n !== c.matched || c.partly.length > 0))
    rows.push([
      'sensitivity',
      `missing as failures: ${pointDifference(c.sensitivity.points, c.sensitivity.interval)}, ${pValue(c.sensitivity.p)} (n = ${c.sensitivity.n})`,
    ]);
  if (c.clusters)
    rows.push([
      'by repository',
      `sensitivity only: SE ${(100 * c.clusters.test.se).toFixed(1)} pp, ${pValue(c.clusters.test.p)}, ${c.clusters.clusters} clusters worth ${c.clusters.effective.toFixed(1)}; leaving one out ${pointDifference(c.clusters.leaveOneOut.low, null)} to ${pointDifference(c.clusters.leaveOneOut.high, null)}`,
    ]);
  return rows;
}

function resourceTable(c: Comparison): Block[] {
  const row = (name: string, r: Bootstrapped | null): string[][] =>
    r
      ? [
          [
            name,
            `${r.estimate.toFixed(3)} [${r.interval.low.toFixed(3)}, ${r.interval.high.toFixed(3)}]`,
            String(r.n),
          ],
        ]
      : [];
  const dollars = (nano: number) => (Number.isFinite(nano) ? formatCost(Math.round(nano)) : 'unbounded');
  const per = (name: string, r: Bootstrapped | null): string[][] =>
    r
      ? [
          [
            name,
            `${dollars(r.estimate)} [${dollars(r.interval.low)}, ${dollars(r.interval.high)}]`,
            String(r.n),
          ],
        ]
      : [];
  const rows = [
    ...row('cost, B / A', c.ratios.cost),
    ...row('tokens, B / A', c.ratios.tokens),
    ...row('steps, B / A', c.ratios.steps),
    ...per('cost per resolved, A', c.costPerResolved.a),
    ...per('cost per resolved, B', c.costPerResolved.b),
  ];
  return rows.length
    ? [
        {
          kind: 'table',
          head: ['ratio of geometric means', `bootstrap 95 %, seed ${c.seed}`, 'n'],
          align: ['left', 'left', 'right'],
          rows,
        },
      ]
    : [];
}

const cut = (text: string): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

function confounds(list: readonly FactDifference[]): Block[] {
  const loud = list.filter((d) => d.loud);
  if (loud.length === 0) return [];
  const groups = [...new Set(loud.map((d) => d.group))].join(', ');
  return [
    {
      kind: 'warning',
      text: `NOT THE SAME CONDITIONS (${groups}): a difference below may come from these and not from the model`,
    },
    {
      kind: 'table',
      head: ['differs', 'A', 'B'],
      align: ['left', 'left', 'left'],
      rows: loud.filter((d) => !d.diff).map((d) => [d.key, cut(d.a), cut(d.b)]),
    },
    ...loud
      .filter((d) => d.diff)
      .flatMap((d): Block[] => [
        { kind: 'text', text: `${d.key}:` },
        { kind: 'lines', lines: d.diff! },
      ]),
  ].filter(
    (block): block is Block => block.kind !== 'table' || (block as { rows: unknown[] }).rows.length > 0,
  );
}

function quiet(list: readonly FactDifference[]): Block[] {
  const rest = list.filter((d) => !d.loud);
  return rest.length
    ? [
        { kind: 'heading', level: 3, text: 'Also different' },
        {
          kind: 'table',
          head: ['key', 'A', 'B'],
          align: ['left', 'left', 'left'],
          rows: rest.map((d) => [d.key, cut(d.a.replace(/\s+/g, ' ')), cut(d.b.replace(/\s+/g, ' '))]),
        },
      ]
    : [];
}

/** For `compare --config`. */
export function configDocument(a: string, b: string, list: readonly FactDifference[]): Document {
  if (list.length === 0)
    return [{ kind: 'text', text: `${a} and ${b} were run with the same configuration.` }];
  return [
    { kind: 'heading', level: 1, text: `Configuration of ${a} and ${b}` },
    {
      kind: 'table',
      head: ['key', a, b],
      align: ['left', 'left', 'left'],
      rows: list.filter((d) => !d.diff).map((d) => [d.key, cut(d.a), cut(d.b)]),
    },
    ...list
      .filter((d) => d.diff)
      .flatMap((d): Block[] => [
        { kind: 'heading', level: 3, text: d.key },
        { kind: 'lines', lines: d.diff! },
      ]),
  ];
}
