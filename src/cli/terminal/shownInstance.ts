/** One trial of a run as a person reads it: its trajectory as a conversation, its patch alone, or all of it as JSON. */
import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import { formatSize } from '../../base/text/units.ts';
import { isNamed, type NamedTrials, requireInstances } from '../../run/namedTrials.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { storedJson } from '../../store/query.ts';
import { commandsOf, engineStays, messagesOf } from '../../store/records/attemptBodies.ts';
import { type ConnectionLine, connectionsOf } from '../../store/records/connections.ts';
import type { RunRow } from '../../store/records/runs.ts';
import { attemptsOf, type TrialLine, trialLines, trialLinesOf } from '../../store/records/trials.ts';
import type { AttemptDocument, MessageChunk } from '../../viewer/documents/attemptDocuments.ts';
import { targetText } from '../../viewer/documents/documents.ts';
import { KEPT_WORK, keptWork } from '../../viewer/documents/keptWork.ts';
import { createDocuments } from '../../viewer/documents/resources.ts';
import { byThread, patchLines, programLines, trajectoryLines } from '../../viewer/trajectoryLines.ts';
import { commandOn, onTerminal, printData, printExactly, printJson, say } from './context.ts';

interface Asked {
  /** The instance's id, or a unique part of it. */
  readonly instance: string;
  readonly json: boolean;
  /** Only the patch. */
  readonly patch: boolean;
  /** Default: the final one. */
  readonly attempt?: number | undefined;
  /** Long outputs are not shortened. */
  readonly full: boolean;
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

function pickTrial(store: Store, { run, ...which }: NamedTrials, part: string): TrialLine {
  const { epoch } = which;
  if (epoch !== undefined && !trialLines(store, run.id).some((line) => line.epoch === epoch))
    throw new UserError(`run ${run.name} has no epoch ${epoch}`);
  const [id] = requireInstances(store, run, [part]) as [string];
  return trialLinesOf(store, run.id, id).filter(isNamed(which)).at(-1)!;
}

/** Lines of a message; `--full` shows all. */
const LONG = 60;

export function showInstance(store: Store, named: NamedTrials, args: Asked): void {
  const { run } = named;
  const line = pickTrial(store, named, args.instance);
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
    const connections = connectionsOf(store, attempt.id);
    const engines = engineStays(store, attempt.id);
    const { submission, captured_patch, ...plain } = attempt;
    const documents = createDocuments(store, { title: '' });
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
      ...(connections.length > 0 && { connections }),
      messages: messages.map((m) => storedJson(m.data) ?? { role: m.role, content: m.content }),
      commands: commandsOf(store, attempt.id).map((c) => ({ ...c, output: c.output.toString('utf8') })),
    });
    return;
  }
  if (args.patch) {
    const documents = createDocuments(store, { title: '' });
    const isKept = keptWork(documents.read(`attempts/${attempt.id}`) as AttemptDocument) !== null;
    const patch = (isKept ? attempt.captured_patch : attempt.model_patch) ?? '';
    if (isKept) say(`${patch.length} bytes, ${KEPT_WORK}: the prediction is empty (run.patch)`);
    // To a file or to git every byte counts; on a terminal nothing of a patch may steer it.
    if (process.stdout.isTTY) printData(inert(patch.toString()));
    else printExactly(patch);
    return;
  }
  sayOthers(run, dirname(store.name), line, trialLinesOf(store, run.id, line.instance_id));
  page(conversation(store, attempt.id, args.full));
}

/** The attempt as the viewer knows it: every message with its step, time and cost, the calls of tools, the patch at the end. */
function conversation(store: Store, attemptId: number, full: boolean): string {
  const documents = createDocuments(store, { title: '' });
  const attempt = documents.read(`attempts/${attemptId}`) as AttemptDocument;
  const maxLines = full ? 0 : LONG;
  const messages = Array.from({ length: attempt.chunks }).flatMap(
    (_, chunk) => (documents.read(`attempts/${attemptId}/messages/${chunk}`) as MessageChunk).messages,
  );
  // The last message of an attempt that submitted is the patch itself.
  const kept = keptWork(attempt);
  const shown = messages.at(-1)?.content === attempt.patch ? messages.slice(0, -1) : messages;
  return [
    ...trajectoryLines(attempt, byThread(attempt, shown), { maxLines }),
    ...programLines(attempt, { maxLines }),
    ...connectionLines(attempt.attempt.connections ?? []),
    ...(attempt.patch ? ['', ...patchLines(attempt.patch, { maxLines })] : []),
    ...(kept === null ? [] : ['', ...patchLines(kept, { maxLines }, `patch, ${KEPT_WORK}`)]),
  ].join('\n');
}

/** Connections that its containers made, or wanted to: one line for each host and what became of it. */
function connectionLines(connections: readonly ConnectionLine[]): string[] {
  if (connections.length === 0) return [];
  const lines = connections.map((line) => {
    const { phase, outcome, reason, count, bytesIn, bytesOut } = line;
    const times = count === 1 ? '' : `, ${count} times`;
    const what =
      outcome === 'allowed' ? `in ${formatSize(bytesIn)}, out ${formatSize(bytesOut)}` : (reason ?? '');
    return inert(
      `  ${phase.padEnd(8)}  ${outcome.padEnd(7)}  ${targetText(line)}${times}${what === '' ? '' : `: ${what}`}`,
    );
  });
  return ['', `connections to the outside (${lines.length})`, ...lines];
}

/** On a terminal a long text goes through a pager, as git does it; what is in it is inert already. */
function page(text: string): void {
  if (process.stdout.isTTY !== true) {
    printData(text);
    return;
  }
  const shown = spawnSync('less', ['-F', '-R', '-X'], {
    input: `${onTerminal(text, process.stdout)}\n`,
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  if (shown.error) printData(text);
}
