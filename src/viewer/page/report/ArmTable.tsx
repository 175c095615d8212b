/** Money, tokens and cache of each arm. Columns that no arm has a value for are left out. */
import { useMemo } from 'react';
import type { MoneyDocument } from '../../documents/documents.ts';
import { writeChosen } from '../../documents/facets.ts';
import { type MapCell, missingParts } from '../../documents/mapGroups.ts';
import type { RunDocument } from '../../documents/resources.ts';
import { Badge, type PlainColumn, PlainTable, Scrolled } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import {
  cost,
  costOfEach,
  DASH,
  integer,
  percent,
  rate,
  rewardRange,
  short,
  words,
} from '../text/numbers.ts';

type ArmDocument = RunDocument['arms'][number];

/** Of what was sent, how much the provider had in its cache. */
export const cacheShare = (money: MoneyDocument): number => money.cacheReadTokens / Math.max(1, sent(money));
const sent = (money: MoneyDocument): number =>
  money.inputTokens + money.cacheReadTokens + money.cacheWriteTokens;

const COLUMNS: readonly (readonly [header: string, text: (arm: ArmDocument) => string, title?: string])[] = [
  [
    'Resolved, 95 % interval',
    ({ tally: { resolved, graded } }) => (graded > 0 ? `${resolved}: ${rate(resolved, graded)}` : DASH),
  ],
  ['Reward', ({ tally }) => rewardRange(tally.reward), 'mean over instances, 95 % interval'],
  ['Cost', ({ money }) => (money.costNano === null ? DASH : cost(money))],
  ['Of one resolved', ({ money, tally }) => costOfEach(money, tally.resolved)],
  ['Sent', ({ money }) => short(sent(money) || null), 'tokens of all requests, cached or not'],
  [
    'From cache',
    ({ money }) =>
      money.cacheReadTokens > 0 ? `${short(money.cacheReadTokens)} (${percent(cacheShare(money))})` : DASH,
    'of what was sent',
  ],
  ['Written to cache', ({ money }) => short(money.cacheWriteTokens || null)],
  ['Answered', ({ money }) => short(money.outputTokens || null), 'output tokens'],
  ['Of it reasoning', ({ money }) => short(money.reasoningTokens || null)],
  ['Calls', ({ money }) => integer(money.calls || null)],
  ['Failed', ({ money }) => integer(money.failedCalls || null)],
];

export function ArmTable({ run: { arms, summary } }: { run: RunDocument }) {
  const known = COLUMNS.filter(([, text]) => arms.some((arm) => text(arm) !== DASH));
  if (known.length === 0) return null;
  const arm: PlainColumn<ArmDocument> = {
    header: 'Arm',
    cell: (row) => (
      <>
        <a href={href(['run', summary.name, 'instances'], { arm: writeChosen([row.arm]) })}>
          {plain(row.arm)}
        </a>{' '}
        <span className="quiet">{plain(row.model)}</span>
      </>
    ),
  };
  const columns = [arm, ...known.map(([header, cell, title]) => ({ header, cell, ...(title && { title }) }))];
  return (
    <section className="keep">
      <h2>Money and tokens</h2>
      <Scrolled className="wide" label="Money and tokens by arm">
        <PlainTable columns={columns} rows={arms} rowId={(row) => row.arm} />
      </Scrolled>
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
  cells: readonly MapCell[];
  run: string;
  /** The run works still: what is missing may come by itself. */
  working: boolean;
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
