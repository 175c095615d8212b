/** One attempt at the gateway: what its program may ask, what it has used, and when it has to end. */

import { createHash } from 'node:crypto';
import { createRoom, type Room } from '../../base/async/room.ts';
import { within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import {
  createTally,
  type Funds,
  type MeteredCall,
  meteredCall,
  type Settle,
  UNLIMITED,
} from '../../model/meteredCall.ts';
import type {
  CallListener,
  ModelErrorResponse,
  ModelFailureKind,
  ModelReply,
  Wire,
  WireAnswer,
  WireRequest,
} from '../../model/model.ts';
import { estimatedTokens } from '../../model/prices.ts';
import { type NanoDollars, nanoToDollars } from '../../money.ts';
import { limitReached } from '../limitsTold.ts';
import { type Answer, type AnswerOutcome, createAnswer } from './answer.ts';
import { createThreads, createTurns } from './conversation.ts';
import type {
  CallFacts,
  CallLabel,
  GatewayEnd,
  GatewaySummary,
  ProgramAnswer,
  SessionSpec,
} from './gateway.ts';
import type { GatewayConfig } from './gatewayConfig.ts';
import {
  type Allowed,
  applyPolicy,
  type CallRequest,
  nameList,
  type Policy,
  type SessionRequest,
} from './policy.ts';
import { isRetry, passedHeaders, returnedHeaders, sideOf, subAgentOf } from './routes.ts';
import { createTranslator, type Translation } from './translator.ts';

/** The inside of a session, as the HTTP server sees it. */
export interface SessionCore {
  readonly ended: Promise<GatewayEnd>;
  /** The answer to a request, which may be one that is on its way or was never fetched. */
  ask(ask: SessionRequest): Answer;
  isStreamed(answer: Answer): boolean;
  note(text: string): void;
  /** No call that has not begun is made any more. */
  refuse(why: string): void;
  /** A request that was refused outside of it. */
  noteRefusal(why: string): void;
  state(): GatewaySummary;
  close(): Promise<GatewaySummary>;
}

/** The provider's last words are read so long when the attempt is over (observed: tests/agent/gateway/gateway.test.ts). */
const LAST_CALLS_MS = 10_000;
const OVER = 'the attempt is over: no further call is made';

interface Session {
  readonly spec: SessionSpec;
  readonly wire: Wire;
  readonly policy: Policy;
  readonly meter: ReturnType<typeof createSessionMeter>;
  readonly turns: ReturnType<typeof createTurns>;
  readonly threads: ReturnType<typeof createThreads>;
  readonly translator: ReturnType<typeof createTranslator>;
  readonly book: ReturnType<typeof createCallBook>;
  readonly open: Set<WaitingCall>;
  readonly end: PromiseWithResolvers<GatewayEnd>;
  readonly signal: AbortSignal;
  readonly streamed: WeakSet<Answer>;
  readonly out: Set<Promise<void>>;
  readonly noted: Set<string>;
  calls: number;
  /** The program asked for an answer, and not for counts of tokens alone. */
  asked: boolean;
  /** A call had an answer, which was paid for. */
  answered: boolean;
  /** The reason for the first refusal of a request here. */
  refusal: string | null;
  /** The reason why no further call is made. */
  over: string | null;
}

interface OpenCall extends WireCall {
  readonly facts: CallFacts;
  readonly answer: Answer;
  readonly startedAt: number;
}

function answered(outcome: AnswerOutcome): Answer {
  const answer = createAnswer();
  answer.finish(outcome);
  return answer;
}

const refused = (refusal: 'payment' | 'bad_request', message: string): Answer =>
  answered({ kind: 'error', refusal, message });

/** Notes may come in any number and length from what a program asks for; the record takes so many (observed: tests/agent/gateway/gateway.test.ts). */
const [LONGEST_NOTE, MOST_NOTES] = [500, 50];

function note({ spec, noted }: Session, text: string): void {
  const short = text.length > LONGEST_NOTE ? `${text.slice(0, LONGEST_NOTE)}…` : text;
  if (noted.has(short) || noted.size > MOST_NOTES) return;
  noted.add(short);
  spec.onNote?.(noted.size > MOST_NOTES ? 'gateway: more notes were left out' : short);
}

function endCalls(session: Session, message: string): void {
  session.over ??= message;
  for (const call of session.open)
    if (!call.metered?.isOut()) call.stopWaiting.abort(new CallNotMade(session.over));
}

function stop(session: Session, why: GatewayEnd, message: string): void {
  endCalls(session, message);
  session.end.resolve(why);
}

/**
 * A call whose end is not told yet. Where the attempt ends, it stops waiting for its turn, and is read to its end where it is out (observed:
 * tests/agent/gateway/waitingCalls.test.ts).
 */
interface WaitingCall {
  readonly stopWaiting: AbortController;
  metered?: MeteredCall;
}

/**
 * Throws where the attempt is over, also when calls that ended while this one waited reached a limit. The call's step is counted already (observed:
 * tests/agent/gateway/waitingCalls.test.ts).
 */
function mayBeMade(session: Session, { kind }: CallLabel): void {
  const limit = kind === 'count_tokens' ? null : session.meter.usedUp();
  if (limit) stop(session, limit, limit.message);
  if (session.over !== null) throw new CallNotMade(session.over);
}

/** The record's side of a call that has ended. */
function tell(
  session: Session,
  { ask, allowed, translation, facts, answer, startedAt }: OpenCall,
  reply: ModelReply | null,
  failure: ModelErrorResponse | null,
): void {
  const { spec, threads, wire } = session;
  const got = answerOf(answer);
  const counted = facts.label.kind === 'count_tokens';
  const { thread, messages } = counted
    ? { thread: 'count_tokens', messages: [] }
    : threads.add(facts.label, sideOf(ask.dialect).recorded(allowed.request), reply?.message ?? null);
  spec.onCall?.({
    ...facts,
    dialect: ask.dialect,
    translated: translation ? wire.dialect : null,
    modelAsked: allowed.modelAsked,
    model: allowed.model,
    operation: allowed.operation,
    streamed: allowed.operation === 'stream',
    status: got.status,
    request: allowed.request,
    sent: allowed.body,
    answer: got,
    response: reply?.raw ?? null,
    reply,
    failure,
    newMessages: messages,
    thread,
    stripped: allowed.stripped,
    startedAt,
    endedAt: Date.now(),
  });
}

/** Never rejects. An error of a listener (a spent budget, a broken record) ends the session. */
async function send(session: Session, call: OpenCall): Promise<void> {
  const { spec, wire, meter } = session;
  const { answer, facts, translation } = call;
  const open: WaitingCall = { stopWaiting: new AbortController() };
  session.open.add(open);
  const signal = AbortSignal.any([session.signal, open.stopWaiting.signal]);
  try {
    const metered = meteredCall({
      funds: meter.funds(tokensAtMost(call)),
      tally: meter.tally,
      to: translatedRows(wire, call, spec.listener(facts)),
    });
    open.metered = metered;
    const listener: CallListener = {
      ...metered,
      async wanted(...asked) {
        mayBeMade(session, facts.label);
        await metered.wanted(...asked);
        mayBeMade(session, facts.label);
      },
    };
    const { answered } = session;
    const sink = translation ? null : answer.sink;
    const speaker = facts.label.kind === 'subagent' ? facts.label.id : facts.label.kind;
    const result = await wire.send(wireRequest(call), sink, { signal, listener, answered, speaker });
    const { response } = result;
    if (response.success && facts.label.kind !== 'count_tokens') session.answered = true;
    const failure = response.success ? null : response;
    session.turns.ended(facts, failure, response.success && response.result.toolCalls.length > 0);
    const kind = failure?.metadata?.kind;
    if (failure && isFinal(kind) && !answer.head() && facts.label.kind !== 'count_tokens')
      stop(session, { kind: 'model', failure }, failure.message);
    answer.finish(outcomeOf(result, answer, translation));
    if (answer.outcome()?.kind === 'cut' && facts.label.kind !== 'count_tokens')
      meter.takeBack(isStep(facts.label));
    tell(session, call, response.success ? response.result : null, failure);
  } catch (error) {
    const { message } = error as Error;
    const ended = signal.aborted || error instanceof CallNotMade;
    if (!ended) stop(session, { kind: 'thrown', error }, message);
    if (answer.outcome() !== null) return;
    const said = ended ? (session.over ?? OVER) : message;
    answer.finish(answer.head() ? { kind: 'cut' } : { kind: 'error', refusal: 'payment', message: said });
  } finally {
    open.metered?.lose();
    session.open.delete(open);
  }
}

function translated(
  session: Session,
  { dialect }: SessionRequest,
  { body, modelAsked, model, operation }: Allowed,
): Translation {
  const { wire, spec, translator } = session;
  const name = model === wire.model ? spec.model.name : model;
  const target = { dialect: wire.dialect, model, name, streamed: operation === 'stream' };
  const translation = translator.translate({ dialect, body, modelAsked, target });
  note(session, `gateway: translated from ${dialect} to ${wire.dialect}`);
  if (translation.left.length > 0)
    note(session, `gateway: not carried to ${wire.dialect}: ${translation.left.join(', ')}`);
  return translation;
}

function begin(session: Session, ask: SessionRequest, allowed: Allowed): Answer {
  const { meter, out, wire } = session;
  const label = labelOf(ask, allowed);
  const limit = label.kind === 'count_tokens' ? null : meter.reached(isStep(label));
  if (limit) stop(session, limit, limit.message);
  if (session.over !== null) return refused('payment', session.over);
  let translation: Translation | null;
  try {
    translation = ask.dialect === wire.dialect ? null : translated(session, ask, allowed);
  } catch (error) {
    return refused('bad_request', `the request cannot be translated: ${errorText(error).slice(0, 300)}`);
  }
  if (label.kind !== 'count_tokens') {
    meter.begin(isStep(label));
    session.asked = true;
  }
  const facts: CallFacts = { index: session.calls, step: meter.steps, label };
  session.calls += 1;
  const answer = createAnswer();
  if (allowed.operation === 'stream') session.streamed.add(answer);
  const work = send(session, { facts, ask, allowed, translation, answer, startedAt: Date.now() });
  out.add(work);
  void work.then(() => out.delete(work));
  return answer;
}

function noteRefusal(session: Session, why: string): void {
  if (!session.asked) session.refusal ??= why;
}

function ask(session: Session, asked: SessionRequest): Answer {
  const answer = answerTo(session, asked);
  const outcome = answer.outcome();
  if (outcome?.kind === 'error') session.spec.onRefused?.(outcome.message);
  if (outcome?.kind === 'error') noteRefusal(session, outcome.message);
  return answer;
}

function answerTo(session: Session, asked: SessionRequest): Answer {
  const { policy, book } = session;
  if (session.over !== null) return refused('payment', session.over);
  const foreign = foreignProblem(session.wire, session.spec.config, asked);
  if (foreign !== null) return refused('bad_request', foreign);
  const allowed = applyPolicy(policy, asked);
  if (!allowed.ok) {
    if (allowed.note !== null) note(session, `gateway: ${allowed.note}`);
    return answered({ kind: 'error', refusal: allowed.refusal, message: allowed.message });
  }
  if (allowed.stripped.length > 0)
    note(session, `gateway: left out what runs at the provider: ${nameList(allowed.stripped)}`);
  if (allowed.unknown.length > 0)
    note(session, `gateway: left out fields that are not known here: ${nameList(allowed.unknown)}`);
  const key = requestKey(asked, asked.query, allowed.body);
  const same = book.find(key, isRetry(asked.headers));
  if (same) {
    note(session, 'gateway: a request that came twice was asked and paid once');
    return same;
  }
  const answer = begin(session, asked, allowed);
  book.remember(key, answer);
  return answer;
}

const summaryOf = ({ meter, calls, asked, turns, refusal }: Session): GatewaySummary => ({
  steps: meter.turns,
  calls,
  asked,
  costNano: meter.tally.costNano,
  spentNano: meter.tally.spentNano,
  tokens: meter.tally.tokens,
  lastFailure: turns.lastFailure(),
  refusal,
});

export function createSessionCore(spec: SessionSpec, wire: Wire): SessionCore {
  const aborter = new AbortController();
  const session: Session = {
    spec,
    wire,
    policy: {
      config: spec.config,
      model: wire.model,
      name: spec.model.name,
      anyModel: spec.anyModel ?? false,
    },
    meter: createSessionMeter(spec.limits),
    turns: createTurns(),
    threads: createThreads(),
    translator: createTranslator(),
    book: createCallBook(),
    open: new Set(),
    end: Promise.withResolvers<GatewayEnd>(),
    signal: spec.signal ? AbortSignal.any([spec.signal, aborter.signal]) : aborter.signal,
    streamed: new WeakSet(),
    out: new Set(),
    noted: new Set(),
    calls: 0,
    asked: false,
    answered: false,
    refusal: null,
    over: null,
  };
  return {
    ended: session.end.promise,
    ask: (asked) => ask(session, asked),
    isStreamed: (answer) => session.streamed.has(answer),
    note: (text) => note(session, text),
    refuse: (why) => endCalls(session, why),
    noteRefusal: (why) => noteRefusal(session, why),
    state: () => summaryOf(session),
    async close() {
      endCalls(session, OVER);
      await within(Promise.all(session.out), LAST_CALLS_MS);
      aborter.abort(new DOMException(OVER, 'AbortError'));
      await Promise.all(session.out);
      session.book.clear();
      return summaryOf(session);
    },
  };
}

/** So many answers that have come are kept in case that they are asked for again. */
const KEPT = 8;

function requestKey({ dialect, operation, model }: CallRequest, query: string, body: Buffer): string {
  return createHash('sha256')
    .update(`${dialect} ${operation} ${model} ${query}\n`)
    .update(body)
    .digest('base64');
}

function createCallBook() {
  const known = new Map<string, Answer>();
  return {
    /**
     * An answer that is on its way, that nobody has got, or that a client asks for again; null where the request must go out (observed:
     * tests/agent/gateway/gateway.test.ts).
     */
    find(key: string, again: boolean): Answer | null {
      const answer = known.get(key);
      const outcome = answer?.outcome();
      if (!answer || outcome === null) return answer ?? null;
      if (outcome?.kind === 'whole' && (again || !answer.isDelivered())) return answer;
      known.delete(key);
      return null;
    },
    remember(key: string, answer: Answer): void {
      known.set(key, answer);
      const ended = [...known].filter(([, one]) => one.outcome() !== null);
      for (const [old] of ended.slice(0, Math.max(0, ended.length - KEPT))) known.delete(old);
    },
    clear: (): void => known.clear(),
  };
}

/** A call that was not made, because the attempt ended before its turn. */
class CallNotMade extends Error {
  override readonly name = 'AbortError';
}

const isStep = (label: CallLabel): boolean => label.kind === 'main' || label.kind === 'subagent';

function labelOf({ operation, headers }: SessionRequest, { hasTools }: Allowed): CallLabel {
  if (operation === 'count_tokens') return { kind: 'count_tokens' };
  const id = subAgentOf(headers);
  if (id !== null) return { kind: 'subagent', id };
  return hasTools ? { kind: 'main' } : { kind: 'title' };
}

interface WireCall {
  readonly ask: SessionRequest;
  readonly allowed: Allowed;
  /** null: the bytes pass as they are. */
  readonly translation: Translation | null;
}

/** Failures that no further call of this attempt can get past. */
const FINAL = new Set<string>(['auth', 'quota', 'unavailable', 'not_found']);
const isFinal = (kind: ModelFailureKind | undefined): boolean => kind !== undefined && FINAL.has(kind);

/** The reason why a request of another protocol than the model's is not made; null where it is. */
function foreignProblem(
  wire: Wire,
  { translate }: GatewayConfig,
  { dialect, operation }: SessionRequest,
): string | null {
  if (dialect === wire.dialect) return null;
  if (translate !== true)
    return `${wire.model} is asked by ${wire.dialect}, and this program speaks ${dialect}: choose a program or a model of the same protocol, or set gateway.translate: true`;
  return operation === 'count_tokens'
    ? `tokens are not counted for a model that speaks ${wire.dialect}`
    : null;
}

/** Headers of one provider's clients mean nothing to another. */
const wireRequest = ({ ask, allowed, translation }: WireCall): WireRequest => ({
  operation: allowed.operation,
  model: allowed.model,
  query: translation ? '' : ask.query,
  headers: translation ? {} : passedHeaders(ask.headers),
  body: translation?.body ?? allowed.body,
  maxOutput: allowed.maxOutput,
});

/** Tokens that a call may use, for the limit of its attempt. */
const tokensAtMost = ({ allowed, translation }: WireCall): number =>
  allowed.operation === 'count_tokens'
    ? 0
    : estimatedTokens((translation?.body ?? allowed.body).length, allowed.maxOutput);

/** The rows of the ledger, each with a note that its request is not the program's own. */
function translatedRows(wire: Wire, { ask, translation }: WireCall, to: CallListener): CallListener {
  if (!translation) return to;
  const said = `translated from ${ask.dialect} to ${wire.dialect}`;
  return { ...to, ended: (row) => to.ended({ ...row, notes: [...row.notes, said] }) };
}

/**
 * The answer came to its end, and says itself what is wrong. An end that says nothing of the request is a connection that broke (observed:
 * tests/agent/gateway/streamOpenings.test.ts).
 */
const endsItself = ({ error, metadata }: ModelErrorResponse): boolean => {
  const kind = metadata?.kind;
  if (kind === 'rejected') return error !== 'INVALID_RESPONSE';
  return kind !== undefined && ['refusal', 'empty', 'bad_call', 'context', 'config'].includes(kind);
};

function passedOutcome({ response, refused: said }: WireAnswer, answer: Answer): AnswerOutcome {
  if (response.success) return { kind: 'whole' };
  const kind = response.metadata?.kind;
  if (answer.head()) return { kind: endsItself(response) ? 'whole' : 'cut' };
  // A provider's words about a key may hold a part of it, and what ends the attempt must not be asked again (observed:
  // tests/agent/gateway/streamOpenings.test.ts).
  if (said && !isFinal(kind)) return { kind: 'refused', ...said };
  return { kind: 'error', refusal: 'bad_request', message: response.message };
}

/** The program's part of a call that has ended. */
function outcomeOf(result: WireAnswer, answer: Answer, translation: Translation | null): AnswerOutcome {
  const { response } = result;
  if (!translation || (!response.success && isFinal(response.metadata?.kind)))
    return passedOutcome(result, answer);
  const said = translation.answer(result);
  if (said.kind === 'failed') return said.outcome;
  answer.sink.head(200, { 'content-type': said.type });
  answer.sink.data(Buffer.from(said.text));
  return { kind: 'whole' };
}

/** The program's answer, from the call's head or its refusal. */
function answerOf(answer: Answer): ProgramAnswer {
  const outcome = answer.outcome();
  const head = answer.head();
  if (outcome?.kind === 'refused')
    return {
      end: 'refused',
      status: outcome.status,
      headers: returnedHeaders(outcome.headers),
      bytes: Buffer.from(outcome.text),
    };
  return {
    end: outcome?.kind ?? 'cut',
    status: head?.status ?? 400,
    headers: returnedHeaders(head?.headers ?? {}),
    bytes: answer.bytes(),
  };
}

// Steps, money and tokens of an attempt at the gateway, against its limits.

type LimitEnd = Extract<GatewayEnd, { kind: 'limit' }>;

/** The most that a call may use, as far as that can be said before it. */
interface Amount {
  readonly nano: NanoDollars;
  readonly tokens: number;
}

/**
 * Calls that are out together could pass a limit together, so one goes out only where its estimate fits beside what is used and what is out.
 * One alone always may: the limit itself is checked elsewhere (observed: tests/agent/gateway/waitingCalls.test.ts).
 */
function roomWithin(limits: SessionSpec['limits'], used: () => Amount): Room<Amount, Settle> {
  const out = new Set<Amount>();
  const within = (limit: number, part: (amount: Amount) => number, amount: Amount): boolean =>
    limit <= 0 || [used(), ...out, amount].reduce((sum, one) => sum + part(one), 0) <= limit;
  const fits = (amount: Amount): boolean =>
    out.size === 0 ||
    (within(limits.costDollars, ({ nano }) => nanoToDollars(nano), amount) &&
      within(limits.tokens, ({ tokens }) => tokens, amount));
  const room = createRoom<Amount, Settle>((amount) => {
    if (!fits(amount)) return { laterMs: undefined };
    out.add(amount);
    const leave = (): void => {
      if (out.delete(amount)) room.look(true);
    };
    return { share: leave };
  });
  return room;
}

function createSessionMeter(limits: SessionSpec['limits']) {
  const tally = createTally();
  let steps = 0;
  let withoutTools = 0;
  const room = roomWithin(limits, () => ({ nano: tally.spentNano, tokens: tally.tokens }));
  const end = (counted: number): LimitEnd | null => {
    const reached = limitReached(limits, {
      steps: counted,
      spentNano: tally.spentNano,
      tokens: tally.tokens,
    });
    return reached && { kind: 'limit', ...reached };
  };
  const count = (isStep: boolean, by: number): void => {
    if (isStep) steps += by;
    else withoutTools += by;
  };
  return {
    tally,
    /** Calls with tools. */
    get steps() {
      return steps;
    },
    /** The same, or calls without tools where there were no others: some programs ask for commands in plain text. */
    get turns() {
      return steps > 0 ? steps : withoutTools;
    },
    begin: (isStep: boolean) => count(isStep, 1),
    /** The provider broke the call off: the program's next request is the same step (observed: tests/agent/gateway/gateway.test.ts). */
    takeBack: (isStep: boolean) => count(isStep, -1),
    /** The funds of a call that may use so many tokens. */
    funds: (tokens: number): Funds => ({
      reserve: (nano, signal, waits) => room.enter({ nano: nano ?? 0, tokens }, signal, waits),
      reserveNow: UNLIMITED.reserveNow,
    }),
    /** The limit that forbids a further call; a call without tools is no step where others have them. */
    reached: (isStep: boolean) => end(isStep ? steps : steps > 0 ? 0 : withoutTools),
    /** The limit of money or tokens that was reached. */
    usedUp: () => end(0),
  };
}
