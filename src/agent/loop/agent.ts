/**
 * The agent: ask the model, run what it says, show it what happened, until something ends it. Read `run` first, then `step`.
 * The names are those of the published DefaultAgent (docs/appendix/seeds.md); what published versions do otherwise is in ../compat/behaviour.ts.
 */

import { strip } from '../../base/python/text.ts';
import { float } from '../../base/python/values.ts';
import { type CommandResult, EnvironmentError } from '../../environment/environment.ts';
import type { Message, ModelErrorResponse, ModelReply } from '../../model/model.ts';
import { nanoToDollars } from '../../money.ts';
import { render, type Vars } from '../../template/render.ts';
import { type Behaviour, behaviourOf, exceptionType, returnCode, withOwnIds } from '../compat/behaviour.ts';
import type {
  Agent,
  AgentCallbacks,
  AgentContext,
  AgentKind,
  AgentParts,
  AgentResult,
  CreateAgent,
} from '../contract.ts';
import { equipmentText } from '../equipment.ts';
import { errorResponse } from '../errors.ts';
import { deadlineOf, stepsLeft, usedOfLimits } from '../limitsTold.ts';
import { bashTool } from '../tool.ts';
import { type Deadline, startDeadline, timeExceeded } from './deadline.ts';
import { fullHistory, shortened } from './degrade.ts';
import {
  announce,
  EmptyReply,
  ExecutionTimeoutError,
  FormatError,
  ModelFailed,
  NonTerminatingException,
  resultOf,
  Submitted,
  TerminatingException,
} from './exceptions.ts';
import { callListener, debugData, guardDisplay } from './listeners.ts';
import { createMeter, createStreaks, type Streaks } from './meter.ts';
import { type Action, type Call, isAction, type ParsedTurn, type Protocol } from './protocol.ts';
import { type History, keepHistory } from './recordedHistory.ts';
import { type Templates, templatesOf } from './templates.ts';

export class DefaultAgent implements Agent {
  /** The history. A push is recorded; everything else that would change it is refused. */
  declare readonly messages: Message[];
  readonly #recorded: History = keepHistory(this);
  protected readonly parts: AgentParts;
  protected readonly behaviour: Behaviour;
  protected readonly protocol: Protocol;
  protected readonly templates: Templates;
  protected readonly callbacks: AgentCallbacks;
  protected readonly bash;
  protected meter = createMeter();
  protected streaks: Streaks;
  protected deadline: Deadline;
  private endsAt = '';
  protected extraTemplateVars: Vars = {};

  constructor(parts: AgentParts) {
    const { config, environment } = parts;
    this.parts = parts;
    this.behaviour = behaviourOf(config.compat);
    this.protocol = this.behaviour.protocol(config, environment.templateVars());
    this.templates = templatesOf(config);
    this.callbacks = guardDisplay(parts.callbacks ?? {});
    this.bash = bashTool(environment);
    this.streaks = createStreaks(config, this.behaviour);
    this.deadline = this.startClock();
  }

  async run(problem: string, extraVars: Vars = {}): Promise<AgentResult> {
    this.extraTemplateVars = { task: problem, ...extraVars };
    this.#recorded.restart();
    this.streaks = createStreaks(this.parts.config, this.behaviour);
    this.deadline = this.startClock();
    try {
      this.addMessage({ role: 'system', content: this.renderTemplate(this.templates.system) });
      const task = this.renderTemplate(this.templates.instance);
      this.addMessage({ role: 'user', content: `${task}${equipmentText(this.parts.equipment)}` });
      for (;;) {
        try {
          await this.step();
        } catch (error) {
          const end = this.handle(error);
          if (end) return this.finish(end);
        }
      }
    } finally {
      this.deadline.stop();
    }
  }

  async step(): Promise<void> {
    await this.getObservation(await this.query());
  }

  /** Asks the model, after looking at the limits. The reply joins the history. */
  async query(): Promise<ModelReply> {
    this.meter.check(this.parts.config);
    this.deadline.check();
    this.meter.beginStep();
    this.callbacks.onStep?.(this.context());
    const { tools } = this.protocol;
    const listener = this.deadline.listen(this.meter.listen(callListener(this.callbacks, this.context)));
    const response = await this.deadline.during((signal) =>
      this.parts.model.query(this.history(), { ...(tools ? { tools } : {}), signal, listener }),
    );
    const reply = response.success ? response.result : this.replyDespite(response);
    this.meter.countReply(reply);
    return this.receive(withOwnIds(reply, this.behaviour, this.meter.steps));
  }

  /** Runs the actions of a reply and shows the model what came of each. */
  async getObservation(reply: ModelReply): Promise<void> {
    const calls = this.parseAction(reply);
    const shown: Message[] = [];
    for (const [index, call] of calls.entries()) {
      try {
        shown.push(await this.answer(reply, call, index));
      } catch (error) {
        // The other calls of the turn still want their answers.
        if (!(error instanceof NonTerminatingException) || index === calls.length - 1) throw error;
        shown.push(...error.messages);
      }
      if (this.behaviour.observeAsTheyCome) this.addMessages(shown.splice(0));
    }
    this.addMessages(shown);
  }

  /** The calls of a reply, or a FormatError when none of them can run. */
  parseAction(reply: ModelReply): readonly Call[] {
    const turn = this.protocol.parse(reply);
    const { error: problem, calls, found } = turn;
    if (problem === null) return calls;
    const extra = formatErrorExtra(turn, this.behaviour.keepMalformedReply ? null : reply);
    const refused: readonly (Call | null)[] = calls.length > 0 ? calls : [null];
    throw new FormatError(
      refused.map((call) => {
        const error = call && 'error' in call ? call.error : problem;
        return this.protocol.answer(this.renderFormatError(reply, error, found), call, extra);
      }),
    );
  }

  /** Runs one command. Ends the attempt when its output submits. */
  async executeAction(action: Action, index = 0): Promise<CommandResult> {
    const startedAt = Date.now();
    const { command } = action;
    this.callbacks.onPhase?.(this.context(), 'exec');
    const result =
      this.behaviour.refused(action) ??
      (await this.deadline.during((signal) => this.bash.execute(action, { signal }))).metadata.result;
    this.callbacks.onCommand?.(this.context(), { step: this.meter.steps, index, command, result, startedAt });
    this.streaks.ran(result);
    if (result.timedOut && !this.behaviour.timeoutIsObservation) {
      const output = this.behaviour.outputText(result);
      const vars = { action: { action: command, command }, output };
      const content = this.renderTemplate(this.templates.timeout, vars);
      const extra = observationExtra(output, result, result.exceptionInfo);
      throw new ExecutionTimeoutError([this.protocol.answer(content, action, extra)]);
    }
    this.hasFinished(result);
    return result;
  }

  /** Throws Submitted when the command's output declares the work finished. */
  hasFinished(result: CommandResult): void {
    const submission = this.behaviour.submission(result);
    if (submission) throw new Submitted(submission.text, submission.bytes);
  }

  addMessage(message: Message): void {
    const stamped = { ...message, extra: { ...message.extra, timestamp: Date.now() / 1000 } };
    this.callbacks.onMessage?.(this.context(), stamped, this.#recorded.next());
    this.#recorded.add(this.callbacks.onMessage ? withoutBulk(stamped) : stamped);
  }

  /** Later wins, as in mini-swe-agent: configuration, environment, model, counters, task. */
  renderTemplate(template: string, vars: Vars = {}): string {
    return render(template, {
      ...this.parts.config,
      ...this.parts.environment.templateVars(),
      ...this.parts.model.templateVars(),
      n_model_calls: this.meter.steps,
      model_cost: float(nanoToDollars(this.meter.spentNano)),
      deadline: this.endsAt,
      steps_left: stepsLeft(this.parts.config, this.meter.steps),
      elapsed_seconds: Math.floor(this.deadline.elapsedMs() / 1000),
      ...this.extraTemplateVars,
      ...vars,
    });
  }

  /**
   * A recoverable error joins the history, and the loop goes on unless that happened too often. An end is returned.
   * Anything else (a broken environment, an abort, a defect) is thrown on, to attempt.ts.
   */
  protected handle(error: unknown): TerminatingException | null {
    if (error instanceof TerminatingException) return error;
    if (error instanceof NonTerminatingException) {
      this.addMessages(error.messages);
      return this.streaks.after(error);
    }
    if (error instanceof EnvironmentError)
      this.callbacks.onError?.(this.context(), errorResponse('TOOL_EXECUTION_ERROR', error.message));
    this.callbacks.onDebug?.('the attempt failed', debugData(error));
    throw error;
  }

  protected finish(end: TerminatingException): AgentResult {
    const submission = end instanceof Submitted ? end.submission : '';
    announce(end, this.context(), this.callbacks);
    const message = this.behaviour.exitMessage(end, submission) as Message;
    this.addMessage({ ...message, extra: exitExtra(end, submission) });
    return { ...resultOf(end, this.#recorded.all(), this.meter), workedMs: this.deadline.elapsedMs() };
  }

  /** A failed query ends the attempt, but for a reply that came and was empty, or called a tool so that its server could not read it. */
  protected replyDespite(failure: ModelErrorResponse): ModelReply {
    if (failure.metadata?.recordedEnd?.reason === 'limit_wall_time')
      throw timeExceeded(this.parts.config.wall_time_limit_seconds);
    const kind = failure.metadata?.kind;
    if (kind === 'bad_call') {
      const content = this.renderFormatError(EMPTY_REPLY, failure.message, []);
      throw new FormatError([this.protocol.answer(content, null, formatErrorExtra(null, null))]);
    }
    if (kind !== 'empty') throw new ModelFailed(failure);
    if (this.behaviour.askAgainWhenEmpty) throw new EmptyReply();
    return EMPTY_REPLY;
  }

  /** Adds a reply to the history, if it holds anything. */
  protected receive(reply: ModelReply): ModelReply {
    const nothing = reply.toolCalls.length === 0 && strip(reply.content) === '';
    if (nothing && this.behaviour.askAgainWhenEmpty) {
      // Cut off before its first word: there is nothing to show, but the model is told.
      if (reply.finishReason !== 'length') throw new EmptyReply();
      return reply;
    }
    const turn = this.protocol.parse(reply);
    if (turn.error === null || this.behaviour.keepMalformedReply) {
      const message = this.behaviour.history(reply, this.protocol) as Message;
      this.addMessage({ ...message, extra: assistantExtra(reply, turn) });
    }
    return reply;
  }

  protected async answer(reply: ModelReply, call: Call, index: number): Promise<Message> {
    if (!isAction(call))
      return this.protocol.answer(
        this.renderFormatError(reply, call.error, []),
        call,
        formatErrorExtra(null, null),
      );
    const result = await this.executeAction(call, index);
    const { command } = call;
    const output = this.behaviour.outputText(result);
    const exceptionInfo = this.behaviour.exceptionInfo(result, command, this.parts.environment);
    const shown = await shortened(output, this.parts.summarize, this.callbacks);
    const content = this.renderTemplate(this.templates.observation, {
      output: this.behaviour.observed({ result, output: shown, exceptionInfo, command }),
    });
    return this.protocol.answer(
      `${content}${this.limitsUsed()}`,
      call,
      observationExtra(output, result, exceptionInfo),
    );
  }

  private limitsUsed(): string {
    const { config } = this.parts;
    if (!config.tell_limits) return '';
    return usedOfLimits(config, {
      steps: this.meter.steps,
      dollars: nanoToDollars(this.meter.spentNano),
      seconds: this.deadline.elapsedMs() / 1000,
    });
  }

  protected renderFormatError(reply: ModelReply, error: string, found: readonly string[]): string {
    const vars = this.behaviour.formatErrorVars(reply, error, found, this.protocol);
    return this.behaviour.formatErrorSeesAll
      ? this.renderTemplate(this.templates.format_error, vars)
      : render(this.templates.format_error, vars);
  }

  protected history(): readonly Message[] {
    return fullHistory(this.#recorded.all(), this.parts.selectHistory, this.callbacks);
  }

  private addMessages(messages: readonly Message[]): void {
    for (const message of messages) this.addMessage(message);
  }

  private startClock(): Deadline {
    const { config, signal, now = () => performance.now() } = this.parts;
    this.endsAt = deadlineOf(config, Date.now());
    return startDeadline({
      limitS: config.wall_time_limit_seconds,
      mode: this.behaviour.wallLimit,
      now,
      signal,
    });
  }

  private readonly context = (): AgentContext => ({
    instanceId: this.parts.instanceId,
    step: this.meter.steps,
  });
}

export const createAgent: CreateAgent = (parts) => new DefaultAgent(parts);
export const builtInAgent: AgentKind = {
  create: createAgent,
  asksItself: true,
  prompted: true,
  equipment: 'found',
};

// Facts that trajectories keep beside each message, in mini-swe-agent's names.

type Extra = Readonly<Record<string, unknown>>;

const assistantExtra = (reply: ModelReply, turn: ParsedTurn): Extra => ({
  actions: turn.calls
    .filter(isAction)
    .map(({ command, callId }) => (callId === undefined ? { command } : { command, tool_call_id: callId })),
  ...responseExtra(reply),
});

const responseExtra = (reply: ModelReply): Extra => ({
  response: reply.raw,
  cost: reply.costNano === null ? null : nanoToDollars(reply.costNano),
});

/** `dropped` is a reply that is not in the history: its response is kept with the error. */
const formatErrorExtra = (turn: ParsedTurn | null, dropped: ModelReply | null): Extra => ({
  interrupt_type: 'FormatError',
  ...(turn && turn.calls.length === 0 ? { n_actions: turn.found.length } : {}),
  ...(dropped ? responseExtra(dropped) : {}),
});

const observationExtra = (output: string, result: CommandResult, exceptionInfo: string): Extra => ({
  raw_output: output,
  returncode: returnCode(result),
  exception_info: exceptionInfo,
  ...(result.timedOut
    ? { exception_type: 'TimeoutExpired' }
    : result.exitCode === -1 && exceptionInfo !== ''
      ? { exception_type: exceptionType(exceptionInfo) }
      : {}),
});

const exitExtra = (end: TerminatingException, submission: string): Extra => ({
  exit_status: end.name,
  submission,
  ...(end.name === 'ModelFailed' ? { exception_str: end.message } : {}),
});

/** Raw outputs and responses are in the record; a history that keeps them too would fill the memory of a long run with many slots. */
function withoutBulk(message: Message): Message {
  const { raw_output: _, response: __, ...extra } = message.extra ?? {};
  return { ...message, extra };
}

/** The published agents' view of a reply without text and calls. The reply's cost came by the listener. */
const EMPTY_REPLY: ModelReply = {
  message: { role: 'assistant', content: null },
  content: '',
  toolCalls: [],
  finishReason: null,
  modelId: null,
  usage: null,
  costNano: 0,
  raw: null,
};
