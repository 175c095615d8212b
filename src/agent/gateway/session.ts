/** One attempt at the gateway: what its program may ask, what it has used, and when it has to end. */
import { within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { ModelErrorResponse, ModelReply, Wire } from '../../model/model.ts';
import { createTurns, isStep, labelOf, type Turns } from './agentTurns.ts';
import { type Answer, createAnswer, type Outcome } from './answer.ts';
import { type CallBook, createCallBook, requestKey } from './callBook.ts';
import { conversationOf } from './conversation.ts';
import type { CallFacts, CallLabel, GatewayEnd, GatewaySummary, SessionSpec } from './gateway.ts';
import { type Allowed, type Ask, judge, named, type Policy } from './policy.ts';
import { isRetry } from './requestHeaders.ts';
import { createSessionMeter, type SessionMeter } from './sessionMeter.ts';
import { createThreads, type Threads } from './threads.ts';
import { createTranslator, type Translation, type Translator } from './translate/translator.ts';
import { CallNotMade, createWaitingCalls, type WaitingCalls } from './waitingCalls.ts';
import {
  answerOf,
  foreignProblem,
  isFinal,
  outcomeOf,
  tokensAtMost,
  translatedRows,
  type WireCall,
  wireRequest,
} from './wireCall.ts';

/** The inside of a session, as the HTTP server sees it. */
export interface SessionCore {
  readonly ended: Promise<GatewayEnd>;
  /** The answer to a request, which may be one that is on its way or was never fetched. */
  ask(ask: Ask): Answer;
  isStreamed(answer: Answer): boolean;
  note(text: string): void;
  /** A request that was refused outside of it. */
  refuses(why: string): void;
  state(): GatewaySummary;
  close(): Promise<GatewaySummary>;
}

/** What the provider still says is read so long when the attempt is over. */
const LAST_CALLS_MS = 10_000;
const OVER = 'the attempt is over: no further call is made';

interface Session {
  readonly spec: SessionSpec;
  readonly wire: Wire;
  readonly policy: Policy;
  readonly meter: SessionMeter;
  readonly turns: Turns;
  readonly threads: Threads;
  readonly translator: Translator;
  readonly book: CallBook;
  readonly waiting: WaitingCalls;
  readonly end: PromiseWithResolvers<GatewayEnd>;
  readonly signal: AbortSignal;
  readonly streamed: WeakSet<Answer>;
  readonly out: Set<Promise<void>>;
  readonly told: Set<string>;
  calls: number;
  /** Why the first request that was refused here was. */
  refusal: string | null;
  /** Why no further call is made. */
  over: string | null;
}

interface OpenCall extends WireCall {
  readonly facts: CallFacts;
  readonly answer: Answer;
  readonly startedAt: number;
}

function answered(outcome: Outcome): Answer {
  const answer = createAnswer();
  answer.finish(outcome);
  return answer;
}

const refused = (refusal: 'payment' | 'bad_request', message: string): Answer =>
  answered({ kind: 'error', refusal, message });

/** What a program asks for may cause any number of notes of any length; the record takes so many. */
const [LONGEST_NOTE, MOST_NOTES] = [500, 50];

function note({ spec, told }: Session, text: string): void {
  const short = text.length > LONGEST_NOTE ? `${text.slice(0, LONGEST_NOTE)}…` : text;
  if (told.has(short) || told.size > MOST_NOTES) return;
  told.add(short);
  spec.onNote?.(told.size > MOST_NOTES ? 'gateway: more notes were left out' : short);
}

function makeNoMore(session: Session, message: string): void {
  session.over ??= message;
  session.waiting.end(session.over);
}

function stop(session: Session, why: GatewayEnd, message: string): void {
  makeNoMore(session, message);
  session.end.resolve(why);
}

/** Throws where the attempt is over, also when a limit was reached by calls that ended while this one waited. Its step is counted already. */
function mayBeMade(session: Session, { kind }: CallLabel): void {
  const limit = kind === 'count_tokens' ? null : session.meter.usedUp();
  if (limit) stop(session, limit, limit.message);
  if (session.over !== null) throw new CallNotMade(session.over);
}

/** The record's side of a call that has ended. */
function tell(
  { spec, threads, wire }: Session,
  { ask, allowed, translation, facts, answer, startedAt }: OpenCall,
  reply: ModelReply | null,
  failure: ModelErrorResponse | null,
): void {
  const got = answerOf(answer);
  const counted = facts.label.kind === 'count_tokens';
  const { thread, messages } = counted
    ? { thread: 'count_tokens', messages: [] }
    : threads.add(facts.label, conversationOf(ask.dialect, allowed.request), reply?.message ?? null);
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

/** Never rejects. What a listener throws (a spent budget, a broken record) ends the session. */
async function send(session: Session, call: OpenCall): Promise<void> {
  const { spec, wire, meter } = session;
  const { answer, facts, translation } = call;
  const { signal, listen, left } = session.waiting.enter(session.signal);
  let metered: ReturnType<SessionMeter['listen']> | undefined;
  try {
    metered = meter.listen(spec.listener(facts), tokensAtMost(call));
    const told = translatedRows(wire, call, metered.listener);
    const listener = listen(told, () => mayBeMade(session, facts.label));
    const result = await wire.send(wireRequest(call), translation ? null : answer.sink, { signal, listener });
    const { response } = result;
    const failure = response.success ? null : response;
    session.turns.ended(facts, failure, response.success && response.result.toolCalls.length > 0);
    const kind = failure?.metadata?.kind;
    if (failure && isFinal(kind) && !answer.head() && facts.label.kind !== 'count_tokens')
      stop(session, { kind: 'model', failure }, failure.message);
    answer.finish(outcomeOf(result, answer, translation));
    tell(session, call, response.success ? response.result : null, failure);
  } catch (error) {
    const { message } = error as Error;
    const ended = signal.aborted || error instanceof CallNotMade;
    if (!ended) stop(session, { kind: 'thrown', error }, message);
    if (answer.outcome() !== null) return;
    const said = ended ? (session.over ?? OVER) : message;
    answer.finish(answer.head() ? { kind: 'cut' } : { kind: 'error', refusal: 'payment', message: said });
  } finally {
    metered?.left();
    left();
  }
}

function translated(
  session: Session,
  { dialect }: Ask,
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

function begin(session: Session, ask: Ask, allowed: Allowed): Answer {
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
  if (label.kind !== 'count_tokens') meter.begin(isStep(label));
  const facts: CallFacts = { index: session.calls, step: meter.steps, label };
  session.calls += 1;
  const answer = createAnswer();
  if (allowed.operation === 'stream') session.streamed.add(answer);
  const work = send(session, { facts, ask, allowed, translation, answer, startedAt: Date.now() });
  out.add(work);
  void work.then(() => out.delete(work));
  return answer;
}

function ask(session: Session, asked: Ask): Answer {
  const answer = answerTo(session, asked);
  const outcome = answer.outcome();
  if (session.calls === 0 && outcome?.kind === 'error') session.refusal ??= outcome.message;
  return answer;
}

function answerTo(session: Session, asked: Ask): Answer {
  const { policy, book } = session;
  if (session.over !== null) return refused('payment', session.over);
  const foreign = foreignProblem(session.wire, session.spec.config, asked);
  if (foreign !== null) return refused('bad_request', foreign);
  const allowed = judge(policy, asked);
  if (!allowed.ok) {
    if (allowed.note !== null) note(session, `gateway: ${allowed.note}`);
    return answered({ kind: 'error', refusal: allowed.refusal, message: allowed.message });
  }
  if (allowed.stripped.length > 0)
    note(session, `gateway: left out what runs at the provider: ${named(allowed.stripped)}`);
  if (allowed.unknown.length > 0)
    note(session, `gateway: left out fields that are not known here: ${named(allowed.unknown)}`);
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

const summaryOf = ({ meter, calls, turns, refusal }: Session): GatewaySummary => ({
  steps: meter.turns,
  calls,
  costNano: meter.costNano,
  spentNano: meter.spentNano,
  tokens: meter.tokens,
  lastFailure: turns.lastFailure(),
  refusal,
});

export function createSessionCore(spec: SessionSpec, wire: Wire): SessionCore {
  const aborter = new AbortController();
  const session: Session = {
    spec,
    wire,
    policy: { config: spec.config, model: wire.model, name: spec.model.name },
    meter: createSessionMeter(spec.limits),
    turns: createTurns(),
    threads: createThreads(),
    translator: createTranslator(),
    book: createCallBook(),
    waiting: createWaitingCalls(),
    end: Promise.withResolvers<GatewayEnd>(),
    signal: spec.signal ? AbortSignal.any([spec.signal, aborter.signal]) : aborter.signal,
    streamed: new WeakSet(),
    out: new Set(),
    told: new Set(),
    calls: 0,
    refusal: null,
    over: null,
  };
  return {
    ended: session.end.promise,
    ask: (asked) => ask(session, asked),
    isStreamed: (answer) => session.streamed.has(answer),
    note: (text) => note(session, text),
    refuses(why) {
      session.refusal ??= why;
    },
    state: () => summaryOf(session),
    async close() {
      makeNoMore(session, OVER);
      await within(Promise.all(session.out), LAST_CALLS_MS);
      aborter.abort(new DOMException(OVER, 'AbortError'));
      await Promise.all(session.out);
      session.book.clear();
      return summaryOf(session);
    },
  };
}
