/** MoneyDocument, tokens and cache of each arm. Columns that no arm has a value for are left out. */
import { useMemo } from 'react';
import type { ArmDocument, MoneyDocument, RunDocument } from '../../documents/documents.ts';
import { writeChosen } from '../../documents/facets.ts';
import { type MapCell, missingParts } from '../../documents/mapGroups.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { cost, DASH, integer, percent, rate, rewardRange, short, words } from '../text/numbers.ts';

interface MoneyColumn {
  readonly header: string;
  readonly title?: string;
  readonly has: (arm: ArmDocument) => boolean;
  readonly text: (arm: ArmDocument) => string;
}

const sent = (money: MoneyDocument): number =>
  money.inputTokens + money.cacheReadTokens + money.cacheWriteTokens;
/** Of what was sent, how much the provider had in its cache. */
export const cacheShare = (money: MoneyDocument): number => money.cacheReadTokens / Math.max(1, sent(money));

const each = ({ money, tally }: ArmDocument): string =>
  tally.resolved === 0 || money.costNano === null
    ? DASH
    : cost({ ...money, costNano: Math.round(money.costNano / tally.resolved) });

const COLUMNS: readonly MoneyColumn[] = [
  {
    header: 'Resolved, 95 % interval',
    has: ({ tally }) => tally.graded > 0,
    text: ({ tally }) => `${tally.resolved}: ${rate(tally.resolved, tally.graded)}`,
  },
  {
    header: 'Reward',
    title: 'mean over instances, 95 % interval',
    has: ({ tally }) => tally.reward !== undefined,
    text: ({ tally }) => rewardRange(tally.reward),
  },
  { header: 'Cost', has: ({ money }) => money.costNano !== null, text: ({ money }) => cost(money) },
  { header: 'Of one resolved', has: (arm) => each(arm) !== DASH, text: each },
  {
    header: 'Sent',
    title: 'tokens of all requests, cached or not',
    has: ({ money }) => sent(money) > 0,
    text: ({ money }) => short(sent(money)),
  },
  {
    header: 'From cache',
    title: 'of what was sent',
    has: ({ money }) => money.cacheReadTokens > 0,
    text: ({ money }) => `${short(money.cacheReadTokens)} (${percent(cacheShare(money))})`,
  },
  {
    header: 'Written to cache',
    has: ({ money }) => money.cacheWriteTokens > 0,
    text: ({ money }) => short(money.cacheWriteTokens),
  },
  {
    header: 'Answered',
    title: 'output tokens',
    has: ({ money }) => money.outputTokens > 0,
    text: ({ money }) => short(money.outputTokens),
  },
  {
    header: 'Of it reasoning',
    has: ({ money }) => money.reasoningTokens > 0,
    text: ({ money }) => short(money.reasoningTokens),
  },
  { header: 'Calls', has: ({ money }) => money.calls > 0, text: ({ money }) => integer(money.calls) },
  {
    header: 'Failed',
    has: ({ money }) => money.failedCalls > 0,
    text: ({ money }) => integer(money.failedCalls),
  },
];

export function ArmTable({ run }: { run: RunDocument }) {
  const { arms, summary } = run;
  const columns = COLUMNS.filter(({ has }) => arms.some(has));
  if (columns.length === 0) return null;
  return (
    <section className="keep">
      <h2>MoneyDocument and tokens</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard */}
      <section className="wide" aria-label="Money and tokens by arm" tabIndex={0}>
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Arm</th>
              {columns.map(({ header, title }) => (
                <th key={header} scope="col" title={title}>
                  {header}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {arms.map((arm) => (
              <tr key={arm.arm}>
                <th scope="row">
                  <a href={href(['run', summary.name, 'instances'], { arm: writeChosen([arm.arm]) })}>
                    {plain(arm.arm)}
                  </a>{' '}
                  <span className="quiet">{plain(arm.model)}</span>
                </th>
                {columns.map(({ header, has, text }) => (
                  <td key={header}>{has(arm) ? text(arm) : DASH}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

/** What helps, by why a trial is missing from the score. */
const NEXT: Readonly<Record<string, (run: string) => string>> = {
  not_graded: (run) => `swebatch evaluate ${run} grades it`,
  infra: (run) => `swebatch resume ${run} tries it again`,
  grading_infra: (run) => `swebatch evaluate ${run} grades it again`,
  not_run: (run) => `swebatch resume ${run} runs it`,
};

interface Missing {
  readonly cells: readonly MapCell[];
  readonly run: string;
  /** The run works still: what is missing may come by itself. */
  readonly working: boolean;
}

export function MissingList({ cells, run, working }: Missing) {
  const parts = useMemo(() => missingParts(cells), [cells]);
  if (parts.length === 0) return null;
  const total = parts.reduce((sum, part) => sum + part.n, 0);
  return (
    <section className="keep">
      <h2>Missing from the score: {integer(total)}</h2>
      <ul className="plainlist missing">
        {parts.map(({ verdict, reason, n }) => (
          <li key={`${verdict} ${reason}`}>
            <span className="count">{integer(n)}</span>
            <a href={href(['run', run, 'instances'], { verdict, reason })}>
              <Badge word={verdict} />
              {reason === verdict ? null : <span className="reason">{plain(words(reason))}</span>}
            </a>
            {working || !NEXT[verdict] ? null : <span className="quiet"> {NEXT[verdict](run)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
