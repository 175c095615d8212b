/** `swebatch ls`: runs of a results root, or the trials of one run. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import { percent } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import { EXIT_CLASSES, OUTCOMES } from '../../outcome.ts';
import { type ArmScore, armScores, classesOf, scoreText } from '../../report/measure/score.ts';
import { toJson } from '../../report/render/document.ts';
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { countsOf, isDead, statusOf } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import { slotsAtWork } from '../../store/live/liveQueries.ts';
import type { Store } from '../../store/open.ts';
import { scoreRows } from '../../store/records/runData.ts';
import { listRuns, shardName, shardOf, spentNano } from '../../store/records/runs.ts';
import { lastSigns, type TrialLine, trialLines } from '../../store/records/trials.ts';
import { defineVerb, flags, json, namedRun, oneOf, output, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, paintWord, printResult, say } from '../terminal/context.ts';
import { countsText, spentText, table } from '../terminal/table.ts';

const lsFlags = flags({
  run: { ...namedRun, place: 'optional' },
  output,
  json,
  class: oneOf(EXIT_CLASSES, 'only trials of this exit class'),
  outcome: oneOf(OUTCOMES, 'only trials with this verdict, each with its first error'),
  watch: toggle('follow a live run: slots, phases, cost, rate, ETA'),
});

export const lsVerb = defineVerb({
  name: 'ls',
  describe: 'list runs, or the trials of a run',
  flags: lsFlags,
  examples: [
    ['$0 ls last --watch', 'follow the newest run from another terminal'],
    ['$0 ls', 'all runs'],
    ['$0 ls last --class infra', 'what failed for reasons that are not the model’s'],
    ['$0 ls last --outcome unresolved', 'what was graded so, and the first error of each'],
  ],
  async run(args) {
    // "view" takes a results root without a flag; here it has one.
    if (args.run !== undefined && existsSync(join(args.run, 'swebatch.db')))
      throw new UserError(`${args.run} is a results root, not a run`, { hint: `swebatch ls -o ${args.run}` });
    const root = resultsRoot(args.output);
    using store = openForReading(root);
    // Both are about one run: without a name, the newest.
    const name = args.run ?? (args.watch || args.class || args.outcome ? 'last' : undefined);
    if (name === undefined) {
      printRuns(store, root, args.json);
      return EXIT.done;
    }
    const run = requireRun(store, name);
    if (args.watch) {
      // Not for a plain ls: it would take longer than its answer.
      const { follow } = await import('../terminal/watchRun.ts');
      await follow(store, root, run);
      return EXIT.done;
    }
    const dead = isDead(root, run);
    const all = liveLines(store, run.id, dead);
    const lines = all.filter(
      (l) => (!args.class || l.exit_class === args.class) && (!args.outcome || l.outcome === args.outcome),
    );
    if (args.outcome) {
      const errors = await firstErrors(store, lines);
      const told = lines.map((line, i) => ({ ...line, first_error: errors[i]! }));
      printResult(args.json, told, () => trialsTable(lines, all, errors));
    } else printResult(args.json, lines, () => trialsTable(lines, all));
    return EXIT.done;
  },
});

/** The lines of trials, with the steps that running ones have taken so far. */
function liveLines(store: Store, runId: number, dead: boolean): TrialLine[] {
  if (dead)
    return trialLines(store, runId).map((line) =>
      line.state === 'running' || line.state === 'leased'
        ? { ...line, state: 'pending', not_run_reason: 'interrupted' }
        : line,
    );
  const running = new Map(slotsAtWork(store, runId).map(({ trial, steps }) => [trial, steps]));
  return trialLines(store, runId).map((line) => ({
    ...line,
    steps: running.get(line.trial_id) ?? line.steps,
  }));
}

/** The first error of each, as `show` says it; null where nothing is known. */
async function firstErrors(store: Store, lines: readonly TrialLine[]): Promise<(string | null)[]> {
  // A list without them is there in half the time.
  const { whyOfAttempt } = await import('../terminal/whyOfAttempt.ts');
  const why = whyOfAttempt(store);
  return lines.map(({ attempt_id }) => {
    const found = attempt_id === null ? null : why(attempt_id);
    return found && (found.firstError ?? found.notPassed[0] ?? found.broken[0] ?? found.says);
  });
}

function printRuns(store: Store, root: string, asJson: boolean): void {
  const signs = lastSigns(store);
  const rows = listRuns(store).map((run) => {
    const trials = scoreRows(store, run.id);
    const counts = countsOf(root, run, classesOf(trials));
    const status = statusOf(root, run);
    const money = spentNano(store, run.id);
    const sign = signs.get(run.id);
    const shard = shardOf(run);
    return {
      run: run.name,
      ...(shard && { shard: shardName(shard) }),
      status,
      created_at: run.created_at,
      planned: Object.values(counts).reduce((a, b) => a + b, 0),
      counts,
      scores: armScores(trials),
      cost_nano: money.nano,
      unknown_cost_calls: money.unknownCalls,
      last_sign_at: status === 'running' && sign !== undefined ? new Date(sign).toISOString() : null,
    };
  });
  const cells = () =>
    rows.map((r) => [
      r.shard === undefined ? r.run : `${r.run} (shard ${r.shard})`,
      r.status,
      r.created_at.slice(5, 16).replace('T', ' '),
      String(r.planned),
      scoresText(r.scores),
      countsText(r.counts, ' '),
      spentText({ nano: r.cost_nano, unknownCalls: r.unknown_cost_calls }),
    ]);
  const head = ['run', 'status', 'created', 'planned', 'resolved', 'by class', 'cost'];
  const json = rows.map(({ scores, ...row }) => ({ ...row, scores: toJson(scores) }));
  printResult(asJson, json, () =>
    rows.length === 0
      ? 'no runs yet; start one with "swebatch run"'
      : table(head, cells(), undefined, paintWord),
  );
  for (const { run, last_sign_at } of rows) sayWhenSilent(run, last_sign_at, root);
}

/** The scores as `report` says them; of several arms without their intervals. */
function scoresText(scores: readonly ArmScore[]): string {
  const graded = scores.filter((score) => score.graded);
  const [only] = graded;
  if (!only) return '-';
  if (scores.length === 1) return scoreText(only);
  const share = ({ overInstances, resolved }: ArmScore) => overInstances?.mean ?? resolved.p;
  return graded
    .map((score) => `${inert(score.arm)} ${share(score) === null ? '-' : percent(share(score)!)}`)
    .join(', ');
}

/** Columns of a terminal; the whole of it is in `show`. */
const ERROR_WIDTH = 100;

/** `all`: those of the run, which say whether an arm and an epoch have to be named. */
function trialsTable(
  lines: readonly TrialLine[],
  all: readonly TrialLine[],
  errors?: readonly (string | null)[],
): string {
  const arms = new Set(all.map((l) => l.arm)).size > 1;
  const epochs = all.some((l) => l.epoch > 1);
  return table(
    [
      'instance',
      ...(arms ? ['arm'] : []),
      ...(epochs ? ['ep'] : []),
      'ended',
      'outcome',
      'steps',
      'cost',
      ...(errors ? ['first error'] : []),
    ],
    lines.map((l, i) => [
      inert(l.instance_id),
      ...(arms ? [inert(l.arm)] : []),
      ...(epochs ? [String(l.epoch)] : []),
      ended(l),
      l.outcome ?? '-',
      String(l.steps ?? 0),
      formatCost(l.cost_nano),
      ...(errors ? [shortened(errors[i] ?? '-')] : []),
    ]),
    undefined,
    paintWord,
  );
}

const shortened = (text: string): string => {
  const line = inert(text.split('\n')[0]!);
  return line.length > ERROR_WIDTH ? `${line.slice(0, ERROR_WIDTH - 1)}…` : line;
};

/** Eight times as long as a process that works is silent by default. */
const SILENT_MS = 120_000;

/** Nobody can say of a process on another machine whether it lives. */
function sayWhenSilent(run: string, lastSign: string | null, root: string): void {
  if (lastSign === null) return;
  const silent = Date.now() - Date.parse(lastSign);
  if (silent < SILENT_MS) return;
  const minutes = Math.floor(silent / 60_000);
  const since = minutes < 120 ? `${minutes} minutes` : `${Math.floor(minutes / 60)} hours`;
  say(
    `${run} gave no sign of life for ${since}; if its process is gone, ${commandOn(root, `resume ${run}`)} goes on`,
  );
}

/** A sealed trial shows its exit reason, any other one its state and how its last attempt ended. */
function ended(l: TrialLine): string {
  const reason = l.exit_reason ?? l.not_run_reason;
  if (l.state === 'sealed') return reason ?? '-';
  return reason ? `${l.state} (${reason})` : l.state;
}
