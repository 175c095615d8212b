/** The messages of an attempt as light rows, and the conversations that they belong to. */
import { namesOfMessages, threadsOf } from '../../formats/trajectory.ts';
import type { CallRow, ProgramCallFacts, ViewerQueries } from '../../store/records/viewerQueries.ts';
import { parts } from '../steps/replyParts.ts';
import { type Action, type StepFacts, stepFacts } from '../steps/stepFacts.ts';
import type { OutlineRow, ThreadDocument } from './documents.ts';
import { readMessage } from './lenient.ts';
import { shownExit } from './shownExit.ts';

type Head = ReturnType<ViewerQueries['messageOutline']>[number];

/** The tries behind the answers, by the messages that they are. */
type Behind = ReadonlyMap<number, readonly CallRow[]>;

/** The n-th message of the built-in agent's model is the n-th step that was answered. */
function behindSteps(queries: ViewerQueries, attemptId: number, heads: readonly Head[]): Behind {
  const byStep = Map.groupBy(queries.calls(attemptId), (call) => call.step);
  const answered = [...byStep.values()].filter((calls) => calls.some((call) => call.state === 'ok'));
  const turns = heads.filter(({ role }) => role === 'assistant');
  return new Map(turns.map(({ seq }, turn) => [seq, answered[turn] ?? []]));
}

/** A program says which message is the answer of which call. */
const behindCalls = (program: readonly ProgramCallFacts[], byCall: Map<number, readonly CallRow[]>): Behind =>
  new Map(
    program.flatMap(({ call, reply_message }) =>
      reply_message === null ? [] : [[reply_message, byCall.get(call) ?? []] as const],
    ),
  );

/** What the commands of a message came to. */
function commandsBehind(queries: ViewerQueries, attemptId: number) {
  const unanswered: string[] = [];
  const commands = new Map<number, { ms: number; code: number; timedOut: boolean; texts: string[] }>();
  for (const command of queries.commandOutline(attemptId)) {
    if (command.message_seq === null) {
      unanswered.push(command.command);
      continue;
    }
    const known = commands.get(command.message_seq);
    commands.set(command.message_seq, {
      ms: (known?.ms ?? 0) + command.duration_ms,
      code: command.exit_code,
      timedOut: (known?.timedOut ?? false) || command.timed_out === 1,
      texts: [...(known?.texts ?? []), command.command],
    });
  }
  return { commands, unanswered };
}

function threadDocuments(
  heads: readonly Head[],
  program: readonly ProgramCallFacts[],
  byCall: Map<number, readonly CallRow[]>,
): ThreadDocument[] {
  if (program.length === 0) return [];
  return threadsOf(heads, program).map(({ name, label, calls, messages }) => {
    const rows = calls.flatMap((call) => byCall.get(call) ?? []);
    const costs = rows.flatMap(({ cost_nano }) => cost_nano ?? []);
    return {
      ...{ name, label, calls: calls.length, messages: messages.length },
      costNano: costs.length > 0 ? costs.reduce((sum, cost) => sum + cost, 0) : null,
      unknownCalls: rows.filter((row) => row.state !== 'in_flight' && row.cost_nano === null).length,
    };
  });
}

const SHELLS = new Set(['bash', 'sh', 'shell', 'mswea_bash_command']);

/** Thoughts quote code too: what is for the shell is the action; where nothing says so, the last block. */
function fencedActions(content: string): Action[] {
  const blocks = parts(content).filter((part) => part.kind === 'code');
  const own = blocks.filter(({ language }) => SHELLS.has(language ?? ''));
  return (own.length > 0 ? own : blocks.slice(-1)).map(({ text }) => ({ name: 'bash', text }));
}

/** What each answer does: by the commands that ran after it, else by what it asks for. */
function actionsBehind(
  queries: ViewerQueries,
  attemptId: number,
  heads: readonly Head[],
  { commands, unanswered }: ReturnType<typeof commandsBehind>,
): ReadonlyMap<number, StepFacts> {
  const facts = new Map<number, StepFacts>();
  if (commands.size > 0) {
    let answer: number | null = null;
    const actions = new Map<number, Action[]>();
    for (const { seq, role } of heads) {
      if (role === 'assistant') answer = seq;
      const own = (commands.get(seq)?.texts ?? []).map((text) => ({ name: 'bash', text }));
      if (answer !== null) actions.set(answer, [...(actions.get(answer) ?? []), ...own]);
    }
    // The command that hands in the work ends the attempt: no observation shows it.
    if (answer !== null && actions.get(answer)?.length === 0)
      actions.set(
        answer,
        unanswered.map((text) => ({ name: 'bash', text })),
      );
    for (const [seq, own] of actions) facts.set(seq, stepFacts(own));
    return facts;
  }
  for (const { seq, content, data } of queries.answers(attemptId)) {
    const { toolCalls } = readMessage(data);
    facts.set(seq, stepFacts(toolCalls.length > 0 ? toolCalls : fencedActions(content)));
  }
  return facts;
}

/** A reply of the model may quote an exit code. */
const observes = (role: string): boolean => role === 'user' || role === 'tool';

/** Joins messages, calls and commands into one light row a message. Commands say themselves which observation shows them. */
export function outlineOf(
  queries: ViewerQueries,
  attemptId: number,
): { outline: OutlineRow[]; threads: ThreadDocument[] } {
  const heads = queries.messageOutline(attemptId);
  const program = queries.programCalls(attemptId);
  const rows = program.length > 0 ? queries.callsOfProgram(attemptId) : [];
  const byCall: Map<number, readonly CallRow[]> = Map.groupBy(rows, ({ call }) => call);
  const behind = program.length > 0 ? behindCalls(program, byCall) : behindSteps(queries, attemptId, heads);
  const behindAnswers = commandsBehind(queries, attemptId);
  const { commands } = behindAnswers;
  const does = actionsBehind(queries, attemptId, heads, behindAnswers);
  const names = namesOfMessages(heads, program);
  // An import knows no times of messages and gives all of them that of the attempt.
  const timed = heads.some((head) => head.created_at !== heads[0]!.created_at);
  let step: number | null = null;
  let turn = 0;
  const outline = heads.map((message): OutlineRow => {
    const calls = behind.get(message.seq) ?? [];
    if (message.role === 'assistant') {
      turn += 1;
      // A program may send an answer of before again.
      step = calls[0]?.step ?? (program.length > 0 ? step : turn);
    }
    const command = commands.get(message.seq);
    return {
      seq: message.seq,
      role: message.role,
      chars: message.chars,
      at: timed ? message.created_at : null,
      thread: names[message.seq] ?? null,
      step,
      call: calls.findLast((call) => call.state === 'ok') ?? null,
      tries: calls.length,
      execMs: command?.ms ?? null,
      exitCode: command?.code ?? (observes(message.role) ? shownExit(message.head) : null),
      timedOut: command?.timedOut ?? false,
      does: does.get(message.seq) ?? null,
    };
  });
  return { outline, threads: threadDocuments(heads, program, byCall) };
}
