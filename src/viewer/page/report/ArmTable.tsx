/** Money and tokens of each arm, and what is missing from the score. Columns that no arm has a value for are left out. */
import { percent } from '../../../base/text/numbers.ts';
import { scoreText } from '../../../report/measure/score.ts';
import { count, dollars, money } from '../../../report/render/document.ts';
import { writeChosen } from '../../documents/facets.ts';
import type { RunDocument } from '../../documents/resources.ts';
import { Badge, type PlainColumn, PlainTable, Scrolled } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { DASH, integer, rewardRange, words } from '../text/numbers.ts';

export type ArmReport = RunDocument['report']['arms'][number];

/** As `report` says it: with several epochs the mean over instances. */
export const scoreOfArm = ({ graded, resolved, estimate }: ArmReport): string =>
  graded && resolved.n > 0 ? scoreText({ resolved, overInstances: estimate }) : DASH;

const tokens = (n: number): string => (n > 0 ? count(n) : DASH);

const COLUMNS: readonly (readonly [header: string, text: (arm: ArmReport) => string, title?: string])[] = [
  ['Resolved, 95 % interval', scoreOfArm],
  ['Reward', ({ reward }) => rewardRange(reward), 'mean over instances, 95 % interval'],
  ['Cost', ({ accounting: { cost } }) => (cost.nano === null ? DASH : money(cost))],
  ['Cost per resolved instance', ({ accounting: { costPerResolved: per } }) => (per ? money(per) : DASH)],
  [
    'Cost per trial, median',
    ({ accounting: { perTrial } }) => (perTrial.p50 === null ? DASH : dollars(perTrial.p50)),
  ],
  [
    'Input tokens',
    ({ accounting: { tokens: used } }) => tokens(used.input),
    'neither read from nor written to a cache',
  ],
  [
    'read from a cache',
    ({ accounting: { tokens: used, cachedShare } }) =>
      used.cache_read > 0 ? `${count(used.cache_read)} (${percent(cachedShare!)})` : DASH,
    'and their share of all that was sent',
  ],
  ['written to a cache', ({ accounting: { tokens: used } }) => tokens(used.cache_write)],
  ['Output tokens', ({ accounting: { tokens: used } }) => tokens(used.output)],
  ['for reasoning', ({ accounting: { tokens: used } }) => tokens(used.reasoning)],
  ['Model calls', ({ accounting: { calls } }) => (calls > 0 ? integer(calls) : DASH)],
  ['failed', ({ accounting: { failedCalls } }) => (failedCalls > 0 ? integer(failedCalls) : DASH)],
  ['Killed for memory', ({ oomKills }) => (oomKills > 0 ? integer(oomKills) : DASH), 'by environment.memory'],
];

/** The arm's model and, where it is not the built-in one, its agent: as far as its name does not say them. */
const aboutOf = ({ arm, model, agent }: ArmReport): string =>
  [model === arm ? null : model, agent].filter((part) => part !== null).join(', ');

export function ArmTable({ run: { report, summary } }: { run: RunDocument }) {
  const { arms } = report;
  const known = COLUMNS.filter(([, text]) => arms.some((arm) => text(arm) !== DASH));
  if (known.length === 0) return null;
  const arm: PlainColumn<ArmReport> = {
    header: 'Arm',
    cell: (row) => (
      <>
        <a href={href(['run', summary.name, 'instances'], { arm: writeChosen([row.arm]) })}>
          {plain(row.arm)}
        </a>{' '}
        <span className="quiet">{plain(aboutOf(row))}</span>
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

/** The command that helps, by why a trial is missing from the score. */
const NEXT: Readonly<Record<string, (run: string) => string>> = {
  not_graded: (run) => `swebatch evaluate ${run} grades it`,
  infra: (run) => `swebatch resume ${run} tries it again`,
  grading_infra: (run) => `swebatch evaluate ${run} grades it again`,
  not_run: (run) => `swebatch resume ${run} runs it`,
};

/** `working`: the run works still, so what is missing may come by itself. */
export function MissingList({ run: { missing, summary }, working }: { run: RunDocument; working: boolean }) {
  if (missing.length === 0) return null;
  const total = missing.reduce((sum, part) => sum + part.n, 0);
  return (
    <section className="keep">
      <h2>Missing from the score: {integer(total)}</h2>
      <ul className="plainlist missing">
        {missing.map(({ verdict, reason, n }) => (
          <li key={`${verdict} ${reason}`}>
            <span className="count">{integer(n)}</span>
            <a href={href(['run', summary.name, 'instances'], { verdict, reason })}>
              <Badge word={verdict} />
              {reason === verdict ? null : <span className="reason">{plain(words(reason))}</span>}
            </a>
            {working || !NEXT[verdict] ? null : (
              <span className="quiet"> {NEXT[verdict](plain(summary.name))}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
