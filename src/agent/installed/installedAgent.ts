/**
 * One life for every installed agent: the gateway opens, the program runs, and what the gateway and the environment know says how it
 * ended. The program's words decide nothing; its exit code and the end of its output are evidence.
 */
import { randomUUID } from 'node:crypto';
import { addAbortListener } from 'node:events';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { startTimer, within } from '../../base/async/timer.ts';
import { float } from '../../base/python/values.ts';
import { errorFirst, lastLines } from '../../base/text/errorFirst.ts';
import { exitCodeTold } from '../../base/text/exitCodeTold.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import {
  type CommandResult,
  type Environment,
  EnvironmentError,
  placeTexts,
} from '../../environment/environment.ts';
import { environmentKindOf, environmentNames } from '../../environment/environments.ts';
import { PROGRAM_FOLDER } from '../../environment/programs/program.ts';
import { shellScript } from '../../environment/shellScript.ts';
import type { Message, ToolCall } from '../../model/model.ts';
import { render, type Vars } from '../../template/render.ts';
import { type AgentConfig, PROMPT_TEMPLATE } from '../agentConfig.ts';
import type {
  AgentCallbacks,
  AgentContext,
  AgentKind,
  AgentParts,
  AgentResult,
  ProgramCallRecord,
} from '../contract.ts';
import type { PlacedEquipment } from '../equipment.ts';
import type {
  ArmGateway,
  CallFacts,
  GatewayCall,
  GatewayEnd,
  GatewaySession,
  GatewaySummary,
} from '../gateway/gateway.ts';
import { deadlineOf, limitsAhead, stepsLeft } from '../limitsTold.ts';
import { type Deadline, startDeadline, timeExceeded } from '../loop/deadline.ts';
import { callListener, guardDisplay } from '../loop/listeners.ts';
import { textResult } from '../loop/protocol.ts';
import { type InstalledProgram, type Launch, objectOf } from './launch.ts';

const PORT = 13131;
/** Every further call is refused: a program that heeds that ends by itself, and its last words are kept. */
const LEAVE_MS = 5000;
/** A program that was told to end (SIGTERM) may write so long what it has; then it is killed (observed: tests/agent/installed/grace.test.ts). */
const GRACE_MS = 10_000;
/** The time that an engine may take to bring the program the word (observed: tests/agent/installed/lateWord.test.ts). */
const TOLD_MS = 30_000;
/** The script tells the program to end when the stop file is there. */
const WITH_GRACE = shellScript('withGrace.sh', import.meta.url);
const STOP_FILE = 'stop';
/** The characters of the program's output that an attempt keeps. */
const OUTPUT_KEPT = 4000;

export const installedAgent = (program: InstalledProgram): InstalledProgram & AgentKind => ({
  ...program,
  ...(program.finds && { equipment: 'found' }),
  leavesPatch: true,
  create: (parts) => ({ run: (task, extraVars) => work(program, parts, task, extraVars ?? {}) }),
});

/** The progress of the program, seen from outside of it. */
interface Run {
  /** null: the program was killed. */
  readonly result: CommandResult | null;
  readonly end: GatewayEnd | null;
  readonly broken: EnvironmentError | null;
  readonly summary: GatewaySummary;
  /** The wall time was over before it ended. */
  readonly timeIsUp: boolean;
}

const eitherOf = new Intl.ListFormat('en-GB', { type: 'disjunction' });

async function work(
  program: InstalledProgram,
  parts: AgentParts,
  task: string,
  extraVars: Vars,
): Promise<AgentResult> {
  const { environment, gateway } = parts;
  if (!gateway || !environment.capabilities.listens)
    return impossible(
      parts,
      `the environment has no way to a gateway: use ${eitherOf.format(environmentNames('listens'))}`,
    );
  if (!parts.model.wire)
    return impossible(parts, `a program cannot ask ${parts.model.name}: there is no provider behind it`);
  const { config, now = () => performance.now() } = parts;
  const deadline = startDeadline({ limitS: config.wall_time_limit_seconds, mode: 'interrupts', now });
  const follow = followCalls(parts, program, deadline);
  const session = openSession(gateway, parts, follow);
  try {
    const run = await runBehind(session, program, parts, deadline, promptOf(parts, task, extraVars));
    const ended = conclude(run, follow.transcript, program, config);
    return { ...ended, workedMs: deadline.elapsedMs() };
  } catch (error) {
    try {
      follow.transcript.breakOff();
    } catch {
      // Where the record is what broke, the first error says so (observed: tests/agent/installed/installedAgent.test.ts).
    }
    throw error;
  } finally {
    deadline.stop();
  }
}

/** null: the agent's own turns. */
function labelOf({ label }: CallFacts): string | null {
  if (label.kind === 'main') return null;
  return label.kind === 'subagent' ? `${label.kind}:${label.id}` : label.kind;
}

interface Follow {
  readonly transcript: Transcript;
  readonly listener: Parameters<ArmGateway['open']>[0]['listener'];
  readonly onCall: (call: GatewayCall) => void;
  readonly note: (text: string) => void;
}

/** The phase of the whole attempt: `model` while a call to it is out; else the phase of the newest call; else `program`. */
export function createWaits(tell: (phase: string) => void) {
  const open = new Map<number, string>();
  let told = '';
  const say = (phase: string): void => {
    told = phase;
    tell(phase);
  };
  const now = (): string => {
    const phases = [...open.values()];
    return phases.includes('model') ? 'model' : (phases.at(-1) ?? 'program');
  };
  say('program');
  return {
    out: (call: number) => void open.set(call, 'model'),
    ended(call: number) {
      open.delete(call);
      if (now() !== told) say(now());
    },
    says(call: number, phase: string) {
      open.delete(call);
      open.set(call, phase);
      // The same again is progress: another call waits for it from now on.
      if (now() !== told || phase === told) say(now());
    },
  };
}

/** The gateway's calls go to the record, in phases that say what the program waits for. */
function followCalls(
  { instanceId, callbacks }: AgentParts,
  program: InstalledProgram,
  deadline: Deadline,
): Follow {
  const told = guardDisplay(callbacks ?? {});
  let step = 0;
  const context = (): AgentContext => ({ instanceId, step });
  const waits = createWaits((phase) => told.onPhase?.(context(), phase));
  const listener = (call: CallFacts) => {
    const label = labelOf(call);
    const at = (): AgentContext => ({
      instanceId,
      step: call.step,
      call: call.index,
      ...(label !== null && { label }),
    });
    const recorded = callListener(told, at);
    return deadline.listen({
      ...recorded,
      began(began: Parameters<typeof recorded.began>[0]) {
        waits.out(call.index);
        if (call.step > step) {
          step = call.step;
          told.onStep?.(at());
        }
        return recorded.began(began);
      },
      ended(ended: Parameters<typeof recorded.ended>[0]) {
        recorded.ended(ended);
        waits.ended(call.index);
      },
      phase: (phase: string) => waits.says(call.index, phase),
    });
  };
  const transcript = createTranscript(told, program, context);
  return {
    transcript,
    listener,
    onCall(call) {
      const added = transcript.add(call);
      told.onProgramCall?.(context(), { call, label: labelOf(call), ...added });
    },
    note: (text) => callbacks?.onNote?.(text),
  };
}

const openSession = (gateway: ArmGateway, parts: AgentParts, follow: Follow): GatewaySession =>
  gateway.open({
    attempt: parts.instanceId,
    model: parts.model,
    limits: {
      steps: parts.config.step_limit,
      costDollars: parts.config.cost_limit,
      tokens: parts.config.token_limit,
    },
    listener: follow.listener,
    onCall: follow.onCall,
    onNote: follow.note,
    signal: parts.signal,
  });

async function runBehind(
  session: GatewaySession,
  program: InstalledProgram,
  { environment, config, signal, mcpServers = [], equipment }: AgentParts,
  deadline: Deadline,
  prompt: string,
): Promise<Run> {
  let end: GatewayEnd | null = null;
  let broken: EnvironmentError | null = null;
  let door: Awaited<ReturnType<Environment['listen']>> | undefined;
  let result: CommandResult | null;
  let summary: GatewaySummary;
  const folders = programFolders(environment);
  try {
    door = await deadline.outside(() => environment.listen(PORT, (connection) => session.handle(connection)));
    const over = Promise.race([
      session.ended.then((decided) => {
        end = decided;
        return 'leaves' as const;
      }),
      door.broken.then((error) => {
        broken = error;
        return 'is lost' as const;
      }),
    ]);
    const launch = program.launch({
      origin: `http://127.0.0.1:${door.port}`,
      key: session.key,
      model: session.model,
      config,
      prompt,
      promptFile: promptFileIn(folders),
      folder: folders.files,
      home: folders.home,
      programs: PROGRAM_FOLDER,
      mcpServers,
      equipment,
    });
    const equipped = equipment && program.finds ? equipLine(equipment, program.finds(folders.home)) : '';
    const limitS = config.wall_time_limit_seconds;
    const timeUp = limitS > 0 ? deadline.signal : undefined;
    if (timeUp) addAbortListener(timeUp, () => session.refuse(timeExceeded(limitS).message));
    result = await runProgram({
      ...{ environment, folders, prompt, limitS, timeUp, signal, over },
      launch: { ...launch, command: `${equipped}${launch.command}` },
    });
  } finally {
    summary = await session.close();
    await door?.close();
    await folders.remove();
  }
  const timeIsUp = config.wall_time_limit_seconds > 0 && deadline.signal.aborted;
  return { result, end, broken, summary, timeIsUp };
}

/** The gateway's decision counts first, then what the environment saw, then how the program ended. */
function conclude(
  { result, end, broken, summary, timeIsUp }: Run,
  transcript: Transcript,
  { says }: InstalledProgram,
  config: AgentConfig,
): AgentResult {
  const limitS = config.wall_time_limit_seconds;
  if (broken) throw broken;
  if (end?.kind === 'thrown') throw end.error;
  const evidence = evidenceOf(result, says);
  const ended = (exitStatus: string, text: string, more: Partial<AgentResult> = {}): AgentResult => {
    transcript.end(exitStatus, text);
    const { steps, costNano } = summary;
    const { messages } = transcript;
    return { exitStatus, submission: '', messages, steps, costNano, ...(evidence && { evidence }), ...more };
  };
  const failed = ({ error: code, message, metadata }: NonNullable<GatewaySummary['lastFailure']>) =>
    ended('ModelFailed', message, { error: { code, message, ...(metadata && { metadata }) } });
  if (end?.kind === 'limit') return ended('LimitsExceeded', end.message, { limit: end.limit });
  if (end?.kind === 'model') return failed(end.failure);
  if (timeIsUp || result?.timedOut)
    return ended('TimeExceeded', result?.exceptionInfo || timeExceeded(limitS).message, {
      limit: 'wall_time',
    });
  if (summary.lastFailure) return failed(summary.lastFailure);
  if (result && !summary.asked) neverAsked(result, summary, config, evidence);
  return ended('Submitted', '');
}

/**
 * Throws where a program that asked for no answer cannot have worked. With `model_optional` a program may ask nobody (observed:
 * tests/agent/installed/installedAgent.test.ts).
 */
function neverAsked(
  result: CommandResult,
  { refusal }: GatewaySummary,
  { model_optional: optional = false }: AgentConfig,
  evidence: AgentResult['evidence'],
): void {
  if (refusal === null && result.exitCode === 0 && optional) return;
  const said = errorFirst(result.output, 300) || 'it wrote nothing';
  const why =
    refusal !== null
      ? `every request of the agent was refused here: ${refusal.slice(0, 300)}`
      : result.exitCode !== 0
        ? `the agent ended ${result.exitCode < 0 ? 'in a way that nobody saw' : `with exit code ${result.exitCode}`} before it asked a model: ${said}`
        : // kimi-cli 1.52.0 said that it is no longer maintained, left with 0, and was counted as unresolved.
          `the agent ended with exit code 0 and never asked a model (where that is right, set agent.model_optional: true): ${said}`;
  throw new EnvironmentError('start_failed', why, { evidence: { ...evidence } });
}

const lastOf = ({ output }: CommandResult): string => lastLines(output, OUTPUT_KEPT).trim();

const evidenceOf = (result: CommandResult | null, says: InstalledProgram['says']): AgentResult['evidence'] =>
  result
    ? {
        // A process that was killed, or whose end nobody saw, has none.
        exit_code: result.exitCode < 0 ? null : result.exitCode,
        output_bytes: result.totalBytes,
        output_end: lastOf(result),
        ...(result.oomKilled && { oom_killed: true }),
        ...says?.(lastOf(result)),
      }
    : { killed: true };

function impossible({ callbacks, instanceId }: AgentParts, message: string): AgentResult {
  callbacks?.onDebug?.(message, { instanceId });
  const error = { code: 'CONFIG_ERROR', message, metadata: { kind: 'config' } } as const;
  return { exitStatus: 'ModelFailed', submission: '', error, messages: [], steps: 0, costNano: 0 };
}

/** The names are those of the built-in agent's templates, at a time when nothing has been used yet. */
function promptOf({ config, environment, model }: AgentParts, task: string, extraVars: Vars): string {
  const deadline = deadlineOf(config, Date.now());
  const prompt = render(config.prompt_template ?? PROMPT_TEMPLATE, {
    ...config,
    ...environment.templateVars(),
    ...model.templateVars(),
    n_model_calls: 0,
    model_cost: float(0),
    elapsed_seconds: 0,
    steps_left: stepsLeft(config, 0),
    task,
    deadline,
    ...extraVars,
  });
  return config.tell_limits ? `${prompt}${limitsAhead(config, deadline)}` : prompt;
}

interface ProgramFolders {
  /** Files of the launch; in a container only root writes there. */
  readonly files: string;
  /** The program's own folder; not in /tmp, where some refuse to keep theirs. */
  readonly home: string;
  /** Removes the folders when the program has ended. */
  remove(): Promise<void>;
}

/** Attempts on this machine run beside each other: each has folders of its own. A container is gone with what is in it. */
export function programFolders({ info }: Pick<Environment, 'info'>): ProgramFolders {
  if (!environmentKindOf({ environment_class: info.kind }).onThisMachine)
    return { files: '/opt/swebatch-agent', home: '/var/tmp/swebatch-agent', remove: async () => {} };
  const own = join(tmpdir(), `swebatch-agent-${randomUUID()}`);
  return {
    files: join(own, 'files'),
    home: join(own, 'home'),
    remove: () => rm(own, { recursive: true, force: true }),
  };
}

export const promptFileIn = ({ files }: ProgramFolders): string => `${files}/prompt.txt`;

interface ProgramRun {
  readonly environment: Environment;
  readonly launch: Launch;
  readonly folders: ProgramFolders;
  readonly prompt: string;
  /** Seconds; 0 is no limit. */
  readonly limitS: number;
  /** Fires when they are over; the time in which a provider keeps the program waiting is none of it. */
  readonly timeUp?: AbortSignal | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Something else has ended the attempt: the program may leave by itself, or nothing that it does can be known any more. */
  readonly over: Promise<'leaves' | 'is lost'>;
}

/**
 * null: the program had to be killed, and its output is not known. Throws EnvironmentError, and the signal's reason (observed:
 * tests/agent/installed/installedAgent.test.ts).
 */
export async function runProgram(run: ProgramRun): Promise<CommandResult | null> {
  const { environment, launch, folders, prompt, limitS, timeUp, signal } = run;
  await placeTexts(environment, folders.files, { ...launch.files, 'prompt.txt': prompt });
  const killing = new AbortController();
  const graceOver = new AbortController();
  const kill = (): void => killing.abort(new Error('the program did not leave'));
  const timers: ReturnType<typeof startTimer>[] = [];
  let running = true;
  const after = (ms: number, act: () => void): void => {
    if (running) timers.push(startTimer(ms, act));
  };
  const tellToEnd = (then: () => void): void => {
    // Where it cannot be told any more, it is killed untold (observed: tests/agent/installed/lateWord.test.ts).
    const told = environment.putFile(`${folders.files}/${STOP_FILE}`, '').catch(() => undefined);
    void within(told, TOLD_MS).then(() => after(GRACE_MS, then));
  };
  void run.over.then((how) => {
    if (how === 'is lost') after(1, kill);
    else after(LEAVE_MS, () => tellToEnd(kill));
  });
  // The time may be over before the program begins: where a machine is busy, or the limit is short (observed: tests/agent/installed/grace.test.ts).
  const timeIsUp = timeUp && addAbortListener(timeUp, () => tellToEnd(() => graceOver.abort()));
  const signals = signal ? [signal, killing.signal] : [killing.signal];
  try {
    return await environment.execute(lineOf(launch, folders), {
      timeoutS: limitS,
      ...(timeUp && { timeUp: graceOver.signal }),
      env: launch.env,
      signal: AbortSignal.any(signals),
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (killing.signal.aborted) return null;
    throw error;
  } finally {
    running = false;
    timeIsUp?.[Symbol.dispose]();
    for (const timer of timers) timer.cancel();
  }
}

/** A copy of what its arm gives it, where it looks; '' where it gives nothing. */
function equipLine(
  { instructions, skills, instructionsFile, skillsFolder }: PlacedEquipment,
  to: ReturnType<NonNullable<InstalledProgram['finds']>>,
): string {
  const copy = (from: string, path: string, folder: string): string =>
    `mkdir -p ${shellWord(folder)} && cp -R ${shellWord(from)} ${shellWord(path)} || exit 125\n`;
  return [
    ...(instructions === null
      ? []
      : [copy(instructionsFile, to.instructions, posix.dirname(to.instructions))]),
    ...(skills === null ? [] : [copy(`${skillsFolder}/.`, to.skills, to.skills)]),
  ].join('');
}

/** The copy is for programs that write beside their configuration, and run as whom the image says. */
const lineOf = ({ command }: Launch, { files, home }: ProgramFolders): string =>
  [
    `mkdir -p ${shellWord(home)} && cp -R ${shellWord(`${files}/.`)} ${shellWord(home)} || exit 125`,
    `stop_file=${shellWord(`${files}/${STOP_FILE}`)}`,
    `agent_line() {\n${command}\n}`,
    WITH_GRACE,
  ].join('\n');

// The calls that the gateway answered, as messages and commands of the record. A program runs its commands itself: what it ran is read
// from its calls of tools, and what came of it from the answers that it sends with a later call.

interface Asked {
  readonly command: string;
  readonly step: number;
  readonly index: number;
  readonly at: number;
}

type AddedCall = Pick<GatewayCall, 'newMessages' | 'reply' | 'thread' | 'step' | 'startedAt' | 'endedAt'>;

interface Transcript {
  readonly messages: readonly Message[];
  add(call: AddedCall): Pick<ProgramCallRecord, 'firstMessage' | 'replyMessage'>;
  /** Tells the commands whose end nobody saw. */
  breakOff(): void;
  /** The same, and the last message. */
  end(exitStatus: string, text: string): void;
}

export function createTranscript(
  callbacks: AgentCallbacks,
  {
    commandTools,
    exitCode,
    endUnknown,
    outputOf,
  }: Pick<InstalledProgram, 'commandTools' | 'exitCode' | 'endUnknown' | 'outputOf'>,
  context: () => AgentContext,
): Transcript {
  const messages: Message[] = [];
  /** Commands without an answer yet, by the ids of their calls. */
  const open = new Map<string, Asked>();
  const add = (message: Message, extra: Readonly<Record<string, unknown>>, at: number): void => {
    const stamped = { ...message, extra: { ...message.extra, ...extra, timestamp: at / 1000 } };
    messages.push(stamped);
    callbacks.onMessage?.(context(), stamped, messages.length - 1);
  };
  const ran = (asked: Asked, answer: string, known: boolean): string => {
    const output = outputOf?.(answer) ?? answer;
    const succeeded = known && endUnknown !== undefined && !endUnknown.test(output);
    const own = exitCode?.exec(output)?.[1] ?? (succeeded ? '0' : undefined);
    // Of a program that is known the form is known: its JSON is the output of a command.
    const code = own === undefined ? (commandTools === 'any' ? exitCodeTold(answer) : null) : Number(own);
    const said = known ? 'the program tells no exit code' : 'the program did not tell what came of it';
    const result = { ...textResult(output), exitCode: code, ...(code === null && { exceptionInfo: said }) };
    const { step, index, command, at } = asked;
    callbacks.onCommand?.(context(), { step, index, command, result, startedAt: at });
    return output;
  };
  const breakOff = (): void => {
    for (const asked of open.values()) ran(asked, '', false);
    open.clear();
  };
  return {
    messages,
    breakOff,
    add({ newMessages, reply, thread, step, startedAt, endedAt }) {
      const firstMessage = messages.length;
      const extra = thread === 'main' ? {} : { thread };
      for (const message of newMessages) {
        const asked = message.tool_call_id === undefined ? undefined : open.get(message.tool_call_id);
        if (asked) {
          open.delete(message.tool_call_id!);
          const output = ran(asked, textOf(message.content), true);
          add(message, { ...extra, raw_output: output }, startedAt);
          continue;
        }
        add(message, extra, message.role === 'assistant' ? endedAt : startedAt);
        for (const [index, call] of (message.tool_calls ?? []).entries()) {
          const command = commandOf(call, commandTools);
          if (command !== null) open.set(call.id, { command, step, index, at: endedAt });
        }
      }
      const answered = reply !== null && newMessages.length > 0;
      return { firstMessage, replyMessage: answered ? messages.length - 1 : null };
    },
    end(exitStatus, text) {
      breakOff();
      add({ role: 'exit', content: text }, { exit_status: exitStatus, submission: '' }, Date.now());
    },
  };
}

/** null: the call runs no command. */
export function commandOf(
  { function: { name, arguments: text } }: ToolCall,
  tools: InstalledProgram['commandTools'],
): string | null {
  if (tools !== 'any' && !tools.includes(name)) return null;
  const args = objectOf(text);
  // Input for a program that runs already is under "chars".
  const command = args.command ?? args.cmd ?? args.chars;
  if (command === undefined && Array.isArray(args.commands)) return args.commands.map(String).join('\n');
  if (typeof command === 'string') return command;
  return Array.isArray(command) ? command.map(String).join(' ') : null;
}

function textOf(content: Message['content']): string {
  if (typeof content === 'string') return content;
  if (content === null) return '';
  const parts = content.map((part) => (part as { text?: unknown } | null)?.text);
  return parts.every((part) => typeof part === 'string') ? parts.join('\n') : JSON.stringify(content);
}
