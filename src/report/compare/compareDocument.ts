/** A comparison as blocks: what confounds it first, then the paired difference, then who changed. */

import { compact } from '../../base/compact.ts';
import { percent, plural } from '../../base/text/numbers.ts';
import type { FactDifference } from '../measure/runFacts.ts';
import {
  type Block,
  block,
  type Document,
  dollarsWithin,
  type Fact,
  NAMES_SHOWN,
  pointDifference,
  pValue,
  range,
  rate,
  reward,
} from '../render/document.ts';
import { isNoSpread } from '../statistics/means.ts';
import type { Bootstrapped } from '../statistics/resampling.ts';
import type { Comparison, Comparisons, RewardDifference } from './compareSides.ts';

const signedReward = (x: number): string => {
  const text = reward(x);
  return x > 0 && text !== '0.000' ? `+${text}` : text;
};

export function compareDocument(all: Comparisons): Document {
  const several = all.comparisons.length > 1;
  return [
    block.heading(1, `Compare ${all.sides.join(' with ')}`),
    ...(several ? overview(all) : []),
    ...all.comparisons.flatMap((c) => pairBlocks(c, several ? c.pHolm : null, several)),
  ];
}

function overview({ comparisons, omnibus: q }: Comparisons): Block[] {
  const rows = comparisons.map((c) => [
    `${c.a.label} → ${c.b.label}`,
    String(c.matched),
    c.difference ? pointDifference(c.difference.points, c.difference.interval) : '–',
    c.pHolm === null ? '–' : pValue(c.pHolm).replace('p = ', '').replace('p ', ''),
  ]);
  return compact([
    q &&
      block.text(
        `Are all equal? Cochran Q = ${q.statistic.toFixed(2)}, df = ${q.df}, ${pValue(q.p)}, n = ${q.n}`,
      ),
    block.table(['pair', 'n', 'difference (B - A)', 'p (Holm)'], rows, ['n', 'p (Holm)']),
  ]);
}

const NOT_COMPARABLE_SHOWN = 12;

function pairBlocks(c: Comparison, pHolm: number | null, several: boolean): Block[] {
  return compact([
    several && block.heading(2, `${c.a.label} → ${c.b.label}`),
    ...c.warnings.map(block.warning),
    ...confounds(c.differences),
    ...equipment(c.differences),
    block.facts(facts(c, pHolm)),
    ...resourceTable(c),
    block.ids('Broken', c.broken),
    block.ids('Fixed', c.fixed),
    c.mixed.length > 0 && block.ids('Mixed over epochs', c.mixed),
    block.text(`Both resolved ${c.both.length}, neither ${c.neither.length + c.unnamedNeither}.`),
    block.ids('Both', c.both, 0),
    block.ids('Neither', c.neither, 0),
    ...[...Map.groupBy(c.notComparable, (x) => x.why)].map(([why, group]) =>
      block.ids(
        `Not comparable, ${why.replaceAll('_', ' ')}`,
        group.map((x) => x.instanceId),
        NOT_COMPARABLE_SHOWN,
      ),
    ),
    c.conditionsUnknown.length > 0 &&
      block.text(
        `The files of ${c.conditionsUnknown.join(' and ')} do not state limits, prompts and resources, so these were not compared.`,
      ),
    ...quiet(c.differences),
  ]);
}

function facts(c: Comparison, pHolm: number | null): Fact[] {
  const fell = c.fellOut.map((f) => `${f.why.replaceAll('_', ' ')} ${f.n}`).join(', ');
  const rows: Fact[] = [
    ['A', sideText(c.a)],
    ['B', sideText(c.b)],
    [
      'matched',
      `${c.matched}${c.partly.length ? ` (${c.partly.length} with fewer valid epochs than planned)` : ''}${c.notComparable.length ? `; not comparable ${c.notComparable.length} (${fell})` : ''}`,
    ],
  ];
  const tested = c.difference && c.test ? testFacts(c, c.difference, c.test, pHolm) : [];
  return [...rows, ...tested, ...(c.reward ? rewardFacts(c.reward, pHolm !== null) : [])];
}

function rewardFacts(c: RewardDifference, several: boolean): Fact[] {
  const { a, b, sign, permutation, missingAsZero, named = [], pHolm } = c;
  return compact<Fact>([
    ['reward', `A ${rewardRange(a)}, B ${rewardRange(b)} (Wilson 95 %)`],
    [
      '',
      `B - A ${signedReward(c.difference)}${c.interval ? ` [${signedReward(c.interval.low)}, ${signedReward(c.interval.high)}]` : ''} (paired, n = ${c.n}, ${c.method} 95 %): ${sign.better} better, ${sign.worse} worse`,
    ],
    sign.p === null || permutation === null
      ? ['', 'fewer than six instances differ: no test']
      : [
          '',
          `sign test ${pValue(sign.p)}, sign-flip permutation (${permutation.method === 'exact' ? 'exact' : `${permutation.draws} draws, seed ${permutation.seed}`}) ${pValue(permutation.p)}${several && pHolm !== undefined ? `, Holm ${pValue(pHolm)}` : ''}`,
        ],
    missingAsZero && [
      '',
      `missing as 0: B - A ${signedReward(missingAsZero.difference)} (n = ${missingAsZero.n})`,
    ],
    ...named
      .slice(0, NAMES_SHOWN)
      .map(
        (one): Fact => [
          '',
          `${one.name}: A ${reward(one.a)}, B ${reward(one.b)}, B - A ${signedReward(one.difference)} (n = ${one.n})`,
        ],
      ),
    named.length > NAMES_SHOWN && ['', `and ${plural(named.length - NAMES_SHOWN, 'further name')}`],
  ]);
}

const rewardRange = ({ mean, interval }: RewardDifference['a']): string =>
  `${reward(mean)} [${reward(interval.low)}, ${reward(interval.high)}]`;

function sideText({
  label,
  model,
  agent,
  epochs,
  meanResolved,
  meanInterval,
  resolved,
}: Comparison['a']): string {
  const score =
    epochs > 1 && meanResolved !== null
      ? `${percent(meanResolved)}${meanInterval ? ` ${range(meanInterval)}` : ''} mean of ${plural(resolved.n, 'instance')} x ${epochs} epochs`
      : rate(resolved);
  const about = [model !== label && model, agent].filter(Boolean).join(', ');
  return `${label}${about ? ` (${about})` : ''}: ${score}`;
}

function testFacts(
  c: Comparison,
  difference: NonNullable<Comparison['difference']>,
  test: NonNullable<Comparison['test']>,
  pHolm: number | null,
): Fact[] {
  const { t, permutation } = c.reference;
  return compact<Fact>([
    [
      'B - A',
      `${pointDifference(difference.points, difference.interval)} (paired, n = ${c.matched}, ${difference.method} 95 %)`,
    ],
    [
      'test',
      `${test.name} ${pValue(test.p)}${pHolm === null ? '' : `, Holm ${pValue(pHolm)}`}: ${c.fixed.length} fixed, ${c.broken.length} broken`,
    ],
    permutation && t && !isNoSpread(t.se) && ['', `t(${t.df}) = ${t.t.toFixed(2)}, ${pValue(t.p)}`],
    ['detectable', detectable(c)],
    c.sensitivity &&
      (c.sensitivity.n !== c.matched || c.partly.length > 0) && [
        'sensitivity',
        `missing as failures: ${pointDifference(c.sensitivity.points, c.sensitivity.interval)}, ${pValue(c.sensitivity.p)} (n = ${c.sensitivity.n})`,
      ],
    c.clusters && [
      'by repository',
      `sensitivity only: SE ${(100 * c.clusters.test.se).toFixed(1)} pp, ${c.clusters.clusters} clusters worth ${c.clusters.effective.toFixed(1)}; leaving one out ${pointDifference(c.clusters.leaveOneOut.low, null)} to ${pointDifference(c.clusters.leaveOneOut.high, null)}`,
    ],
  ]);
}

function detectable(c: Comparison): string {
  if (c.detectable !== null)
    return `${(100 * c.detectable).toFixed(1)} pp with 80 % power (n = ${c.matched}${c.discordance === null ? '' : `, ${percent(c.discordance)} discordant`}); smaller differences stay unseen`;
  return c.matched < 2
    ? 'one instance shows nothing about the next'
    : 'no instance differs: nothing to estimate it from';
}

function resourceTable({
  ratios,
  cachedShare,
  overheadTokens,
  costPerResolved,
  seed,
  matched,
}: Comparison): Block[] {
  const row = (name: string, r: Bootstrapped | null, show: (x: number) => string) =>
    r && [
      name,
      r.interval
        ? `${show(r.estimate)} [${show(r.interval.low)}, ${show(r.interval.high)}]`
        : `${show(r.estimate)} (no interval of ${r.n})`,
      String(r.n),
    ];
  const ratio = (x: number) => x.toFixed(3);
  const inDollars = (r: Bootstrapped | null) => dollarsWithin(r?.interval ?? null);
  const rows = compact([
    row('cost, B / A', ratios.cost, ratio),
    row('tokens, B / A', ratios.tokens, ratio),
    row('steps, B / A', ratios.steps, ratio),
    row('wall time, B / A', ratios.wallTime, ratio),
    row('cost per resolved, A', costPerResolved.a, inDollars(costPerResolved.a)),
    row('cost per resolved, B', costPerResolved.b, inDollars(costPerResolved.b)),
    Boolean(cachedShare.a || cachedShare.b) && [
      'input from the cache',
      `A ${percent(cachedShare.a ?? 0)}, B ${percent(cachedShare.b ?? 0)}`,
      String(matched),
    ],
    overheadTokens.a !== null &&
      overheadTokens.b !== null && [
        'tokens beside the task',
        `A ${overheadTokens.a}, B ${overheadTokens.b} in a first request`,
        String(matched),
      ],
  ]);
  if (rows.length === 0) return [];
  return [block.table(['ratio of geometric means', `bootstrap 95 %, seed ${seed}`, 'n'], rows, ['n'])];
}

const cut = (text: string): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
const factRow = (d: FactDifference): string[] => [d.key, cut(d.a), cut(d.b)];

function confounds(list: readonly FactDifference[]): Block[] {
  const loud = list.filter((d) => d.loud);
  if (loud.length === 0) return [];
  const groups = [...new Set(loud.map((d) => d.group))].join(', ');
  const short = loud.filter((d) => !d.diff);
  return compact([
    block.warning(
      `NOT THE SAME CONDITIONS (${groups}): a difference below may come from these and not from the model`,
    ),
    short.length > 0 && block.table(['differs', 'A', 'B'], short.map(factRow)),
    ...loud.flatMap((d) => (d.diff ? [block.text(`${d.key}:`), block.lines(d.diff)] : [])),
  ]);
}

const EQUIPMENT: Readonly<Record<string, string>> = {
  'agent.skills_sha256': 'skills',
  'agent.instructions_sha256': 'instructions',
  'agent.mcp_servers': 'servers of tools',
};

/** The runs with and without a skill are a paired experiment, and are to be read as one. */
function equipment(list: readonly FactDifference[]): Block[] {
  const said = list.flatMap(({ key, a, b }) => {
    const what = EQUIPMENT[key];
    if (what === undefined) return [];
    const sides = [a, b].map((one) => (one === '(none)' ? 'none' : 'its own'));
    return [
      a === '(none)' || b === '(none)' ? `${what}: A ${sides[0]}, B ${sides[1]}` : `${what}: not the same`,
    ];
  });
  if (said.length === 0) return [];
  const alone = list.every(({ group, loud }) => group === 'equipment' || !loud);
  const end = alone ? ' The conditions are otherwise the same: this is a paired experiment about that.' : '';
  return [block.text(`What the arms give their agents differs (${said.join('; ')}).${end}`)];
}

function quiet(list: readonly FactDifference[]): Block[] {
  const rest = list.filter((d) => !d.loud);
  if (rest.length === 0) return [];
  const oneLine = (text: string) => cut(text.replace(/\s+/g, ' '));
  return [
    block.heading(3, 'Also different'),
    block.table(
      ['key', 'A', 'B'],
      rest.map((d) => [d.key, oneLine(d.a), oneLine(d.b)]),
    ),
  ];
}

/** The document of `compare --config`. */
export function configDocument(a: string, b: string, list: readonly FactDifference[]): Document {
  if (list.length === 0) return [block.text(`${a} and ${b} were run with the same configuration.`)];
  return [
    block.heading(1, `Configuration of ${a} and ${b}`),
    block.table(['key', a, b], list.filter((d) => !d.diff).map(factRow)),
    ...list.flatMap((d) => (d.diff ? [block.heading(3, d.key), block.lines(d.diff)] : [])),
  ];
}
