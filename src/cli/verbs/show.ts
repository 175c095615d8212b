/** `swebatch show`: one run, or one trajectory as a readable conversation. */

import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import { formatCost } from '../../money.ts';
import { armScores, scoreText } from '../../report/measure/score.ts';
import { toJson } from '../../report/render/document.ts';
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { countsOf, statusOf } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { storedJson } from '../../store/query.ts';
import { commandsOf, messagesOf, observedIn } from '../../store/records/attemptBodies.ts';
import { scoreRows } from '../../store/records/reportQueries.ts';
import {
  armsOf,
  findRun,
  type RunRow,
  spentNano,
  storedConfig,
  storedManifest,
} from '../../store/records/runs.ts';
import {
  attemptsOf,
  classCounts,
  type TrialLine,
  trialLines,
  trialLinesNamed,
} from '../../store/records/trials.ts';
import { viewerQueries } from '../../store/records/viewerQueries.ts';
import type { AttemptDocument, MessageChunk } from '../../viewer/documents/attemptDocuments.ts';
import { createDocuments } from '../../viewer/documents/resources.ts';
import { byThread, patchLines, programLines, trajectoryLines } from '../../viewer/trajectoryLines.ts';
import { type Args, defineVerb, flags, json, namedRun, output, string, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, printData, printExactly, printJson, say } from '../terminal/context.ts';
import { countsText, spentText } from '../terminal/table.ts';

const showFlags = flags({
  run: {
    ...namedRun,
    describe: 'name, unique prefix, or "last"; RUN/ARM@EPOCH chooses among trials of an instance',
  },
  instance: { ...string('instance id, or a unique part of it'), place: 'optional' },
  output,
  json,
  manifest: toggle('print the manifest (run.json)'),
  patch: toggle('print only the patch'),
  attempt: { type: 'number', bare: true, describe: 'number of the attempt; default: the final one' },
  full: toggle('do not shorten long outputs'),
});
type ShowArgs = Args<typeof showFlags>;

export const showVerb = defineVerb({
  name: 'show',
  describe: 'show a run, or the trajectory of one of its instances',
  flags: showFlags,
  examples: [
    ['$0 show last', 'what a run is made of'],
    ['$0 show last tabular-3 | less -R', 'read a trajectory'],
    ['$0 show night/second@2 tabular-3', 'that of one arm in the second epoch'],
  ],
  async run(args) {
    using store = openForReading(resultsRoot(args.output));
    const named = namedTrials(store, args.run);
    const { run } = named;
    if (args.manifest) printJson({ ...storedManifest(run), observed: observedIn(store, run.id) });
    else if (!args.instance) showRun(store, run, args.json as boolean);
    else showInstance(store, named, args);
    return EXIT.done;
  },
});

function showRun(store: Store, run: RunRow, json: boolean): void {
  const root = dirname(store.name);
  const status = statusOf(root, run);
  const counts = countsOf(root, run, classCounts(store, run.id));
  const money = spentNano(store, run.id);
  const scores = armScores(scoreRows(store, run.id));
  const arms = armsOf(store, run.id);
  if (json) {
    printJson({
      ...run,
      status,
      config: storedConfig(run),
      manifest: storedManifest(run),
      counts,
      cost_nano: money.nano,
      scores: toJson(scores),
    });
    return;
  }
  printData(
    [
      `run       ${run.name} (${status}${status === run.status ? '' : ': its process is gone'})`,
      `created   ${run.created_at}${run.finished_at ? `, finished ${run.finished_at}` : ''}`,
      `dataset   ${inert(run.dataset_source)}${run.dataset_revision ? ` @ ${run.dataset_revision}` : ''}`,
      `arms      ${arms.map((a) => `${inert(a.name)} (${inert(a.model)})`).join(', ')}`,
      ...scores.map((score, i) => {
        const name = scores.length > 1 ? `${inert(score.arm)} ` : '';
        return `${i === 0 ? 'resolved  ' : '          '}${name}${score.graded ? scoreText(score) : 'not graded'}`;
      }),
      `trials    ${countsText(counts)}`,
      `cost      ${spentText(money)}`,
      `budget    ${run.budget_nano === null ? 'none' : formatCost(run.budget_nano)}`,
      '',
      ...(status === run.status
        ? []
        : [`next      ${commandOn(root, `resume ${run.name}`)} goes on with it`]),
      `see also  ${commandOn(root, `ls ${run.name}`)}, ${commandOn(root, `report ${run.name}`)}`,
    ].join('\n'),
  );
}

/** A run, or those trials of it that RUN/ARM, RUN@EPOCH or RUN/ARM@EPOCH means. */
interface NamedTrials {
  readonly run: RunRow;
  readonly arm?: string | undefined;
  readonly epoch?: number | undefined;
}

function namedTrials(store: Store, selector: string): NamedTrials {
  const [, name = '', rest = ''] = /^([^/@]+)(.*)$/s.exec(selector) ?? [];
  const run = rest === '' || 'id' in findRun(store, selector) ? null : findRun(store, name);
  if (run === null || !('id' in run)) return { run: requireRun(store, selector) };
  const arms = armsOf(store, run.id).map((arm) => arm.name);
  // Names of models may hold slashes and "@" themselves: what is an arm as it stands is one.
  const whole = rest.startsWith('/') ? rest.slice(1) : null;
  if (whole !== null && arms.includes(whole)) return { run, arm: whole };
  const [, before = '', epoch] = /^(.*)@(\d{1,6})$/s.exec(rest) ?? [];
  const arm = epoch === undefined ? rest.slice(1) : before.slice(1) || undefined;
  if (arm !== undefined && !arms.includes(arm))
    throw new UserError(`run ${run.name} has no arm "${arm}"; it has ${arms.join(', ')}`);
  return { run, arm, epoch: epoch === undefined ? undefined : Number(epoch) };
}

/** Trials of one instance beside the one that is shown: a person is told how to see them. */
function sayOthers(run: RunRow, root: string, shown: TrialLine, lines: readonly TrialLine[]): void {
  const others = lines.filter((l) => l.instance_id === shown.instance_id && l.trial_id !== shown.trial_id);
  if (others.length === 0) return;
  const [{ arm, epoch }] = others as [TrialLine];
  const more = others.length === 1 ? '1 more trial' : `${others.length} more trials`;
  const command = commandOn(root, `show ${run.name}/${arm}@${epoch} ${shown.instance_id}`);
  say(inert(`${more} of this instance, for example ${command}`));
}

function pickTrial(store: Store, { run, arm, epoch }: NamedTrials, part: string): TrialLine {
  const isMeant = (line: TrialLine) => (arm ?? line.arm) === line.arm && (epoch ?? line.epoch) === line.epoch;
  const found = trialLinesNamed(store, run.id, part).filter(isMeant);
  const ids = new Set(found.map((l) => l.instance_id));
  if (ids.size === 1) return found.at(-1)!;
  if (ids.size === 0 && epoch !== undefined && !trialLines(store, run.id).some(isMeant))
    throw new UserError(`run ${run.name} has no epoch ${epoch}`);
  if (ids.size === 0)
    throw new UserError(`run ${run.name} has no instance "${part}"`, {
      hint: `list them with ${commandOn(dirname(store.name), `ls ${run.name}`)}`,
    });
  throw new UserError(`"${part}" names several instances: ${[...ids].slice(0, 8).join(', ')}`);
}

/** Lines of a message; `--full` shows all. */
const LONG = 60;

function showInstance(store: Store, named: NamedTrials, args: ShowArgs): void {
  const { run } = named;
  const line = pickTrial(store, named, args.instance as string);
  const attempts = attemptsOf(store, line.trial_id);
  const attempt =
    args.attempt === undefined
      ? (attempts.find((a) => a.id === line.attempt_id) ?? attempts.at(-1))
      : attempts.find((a) => a.number === args.attempt);
  if (!attempt)
    throw new UserError(
      attempts.length === 0
        ? `${line.instance_id} was not run yet`
        : `${line.instance_id} has attempts 1 to ${attempts.length}`,
    );
  const messages = messagesOf(store, attempt.id);
  if (args.json) {
    const engines = viewerQueries(store).engineStays(attempt.id);
    const { submission, captured_patch, ...plain } = attempt;
    const documents = createDocuments(viewerQueries(store), { title: '' });
    printJson({
      run: run.name,
      instance_id: line.instance_id,
      why: (documents.read(`attempts/${attempt.id}`) as AttemptDocument).why,
      attempt: {
        ...plain,
        submission: submission?.toString('utf8') ?? null,
        captured_patch: captured_patch?.toString('utf8') ?? null,
      },
      ...(engines.length > 0 && { engines }),
      messages: messages.map((m) => storedJson(m.data) ?? { role: m.role, content: m.content }),
      commands: commandsOf(store, attempt.id).map((c) => ({ ...c, output: c.output.toString('utf8') })),
    });
    return;
  }
  if (args.patch) {
    const patch = attempt.model_patch ?? '';
    // To a file or to git every byte counts; on a terminal nothing of a patch may steer it.
    if (process.stdout.isTTY) printData(inert(patch));
    else printExactly(patch);
    return;
  }
  sayOthers(run, dirname(store.name), line, trialLinesNamed(store, run.id, line.instance_id));
  page(conversation(store, attempt.id, args.full));
}

/** The attempt as the viewer knows it: every message with its step, time and cost, the calls of tools, the patch at the end. */
function conversation(store: Store, attemptId: number, full: boolean): string {
  const documents = createDocuments(viewerQueries(store), { title: '' });
  const attempt = documents.read(`attempts/${attemptId}`) as AttemptDocument;
  const maxLines = full ? 0 : LONG;
  const messages = Array.from({ length: attempt.chunks }).flatMap(
    (_, chunk) => (documents.read(`attempts/${attemptId}/messages/${chunk}`) as MessageChunk).messages,
  );
  // The last message of an attempt that submitted is the patch itself.
  const shown = messages.at(-1)?.content === attempt.patch ? messages.slice(0, -1) : messages;
  return [
    ...trajectoryLines(attempt, byThread(attempt, shown), { maxLines }),
    ...programLines(attempt, { maxLines }),
    ...(attempt.patch ? ['', ...patchLines(attempt.patch, { maxLines })] : []),
  ].join('\n');
}

/** On a terminal a long text goes through a pager, as git does it; what is in it is inert already. */
function page(text: string): void {
  if (process.stdout.isTTY !== true) {
    printData(text);
    return;
  }
  const shown = spawnSync('less', ['-F', '-R', '-X'], {
    input: `${text}\n`,
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  if (shown.error) printData(text);
}
