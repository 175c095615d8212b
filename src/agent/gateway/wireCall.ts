/** Between a program's call and the model's connection: what is sent, what the program gets of its end, and where the two speak differently. */
import type {
  CallListener,
  ModelErrorResponse,
  ModelFailureKind,
  Wire,
  WireAnswer,
  WireRequest,
} from '../../model/model.ts';
import { estimatedTokens } from '../../model/prices.ts';
import type { Answer, AnswerOutcome } from './answer.ts';
import type { ProgramAnswer } from './gateway.ts';
import type { GatewayConfig } from './gatewayConfig.ts';
import type { Allowed, Ask } from './policy.ts';
import { passedHeaders, returnedHeaders } from './routes.ts';
import type { Translation } from './translate/translator.ts';

export interface WireCall {
  readonly ask: Ask;
  readonly allowed: Allowed;
  /** null: the bytes pass as they are. */
  readonly translation: Translation | null;
}

/** Failures that no further call of this attempt can get past. */
const FINAL = new Set<string>(['auth', 'quota', 'unavailable', 'not_found']);
export const isFinal = (kind: ModelFailureKind | undefined): boolean => kind !== undefined && FINAL.has(kind);

/** Why a request of another protocol than the model's is not made; null where it is. */
export function foreignProblem(
  wire: Wire,
  { translate }: GatewayConfig,
  { dialect, operation }: Ask,
): string | null {
  if (dialect === wire.dialect) return null;
  if (translate !== true)
    return `${wire.model} is asked by ${wire.dialect}, and this program speaks ${dialect}: choose a program or a model of the same protocol, or set gateway.translate: true`;
  return operation === 'count_tokens'
    ? `tokens are not counted for a model that speaks ${wire.dialect}`
    : null;
}

/** Headers of one provider's clients mean nothing to another. */
export const wireRequest = ({ ask, allowed, translation }: WireCall): WireRequest => ({
  operation: allowed.operation,
  model: allowed.model,
  query: translation ? '' : ask.query,
  headers: translation ? {} : passedHeaders(ask.headers),
  body: translation?.body ?? allowed.body,
  maxOutput: allowed.maxOutput,
});

/** What a call may use, for the limit of its attempt. */
export const tokensAtMost = ({ allowed, translation }: WireCall): number =>
  allowed.operation === 'count_tokens'
    ? 0
    : estimatedTokens((translation?.body ?? allowed.body).length, allowed.maxOutput);

/** Each row of the ledger says that its request is not the program's own. */
export function translatedRows(wire: Wire, { ask, translation }: WireCall, to: CallListener): CallListener {
  if (!translation) return to;
  const said = `translated from ${ask.dialect} to ${wire.dialect}`;
  return { ...to, ended: (row) => to.ended({ ...row, notes: [...row.notes, said] }) };
}

/** The answer came to its end, and says itself what is wrong. An end that says nothing of the request is a connection that broke. */
const endsItself = ({ error, metadata }: ModelErrorResponse): boolean => {
  const kind = metadata?.kind;
  if (kind === 'rejected') return error !== 'INVALID_RESPONSE';
  return kind === 'refusal' || kind === 'empty' || kind === 'context' || kind === 'config';
};

function passedOutcome({ response, refused: said }: WireAnswer, answer: Answer): AnswerOutcome {
  if (response.success) return { kind: 'whole' };
  const kind = response.metadata?.kind;
  if (answer.head()) return { kind: endsItself(response) ? 'whole' : 'cut' };
  // A provider's words about a key may hold a part of it, and what ends the attempt must not be asked again.
  if (said && !isFinal(kind)) return { kind: 'refused', ...said };
  return { kind: 'error', refusal: 'bad_request', message: response.message };
}

/** What the program gets of a call that has ended. */
export function outcomeOf(
  result: WireAnswer,
  answer: Answer,
  translation: Translation | null,
): AnswerOutcome {
  const { response } = result;
  if (!translation || (!response.success && isFinal(response.metadata?.kind)))
    return passedOutcome(result, answer);
  const said = translation.answer(result);
  if (said.kind === 'failed') return said.outcome;
  answer.sink.head(200, { 'content-type': said.type });
  answer.sink.data(Buffer.from(said.text));
  return { kind: 'whole' };
}

/** What the program got, from the call's head or its refusal. */
export function answerOf(answer: Answer): ProgramAnswer {
  const outcome = answer.outcome();
  const head = answer.head();
  if (outcome?.kind === 'refused')
    return {
      ...{ end: 'refused', status: outcome.status, headers: returnedHeaders(outcome.headers) },
      bytes: Buffer.from(outcome.text),
    };
  return {
    end: outcome?.kind ?? 'cut',
    status: head?.status ?? 400,
    headers: returnedHeaders(head?.headers ?? {}),
    bytes: answer.bytes(),
  };
}
