/** What a provider said of a request, in the protocol of the program that asked. Pure. */
import type { DialectName } from '../../../model/dialects/dialects.ts';
import { providerError } from '../../../model/dialects/providerError.ts';
import type { WireAnswer } from '../../../model/model.ts';
import type { Outcome } from '../answer.ts';
import { errorBody } from '../errorBodies.ts';
import type { Body } from './commonForm.ts';

/** Programs shorten a conversation that has become too long; each knows it by words of its provider. */
function tooLong(dialect: DialectName, message: string): Body {
  const said = errorBody(dialect, 'bad_request', message);
  if (dialect === 'messages') return errorBody(dialect, 'bad_request', `prompt is too long: ${message}`);
  if (dialect === 'gemini')
    return errorBody(
      dialect,
      'bad_request',
      `The input token count exceeds the maximum number of tokens allowed: ${message}`,
    );
  return { error: { ...(said.error as Body), code: 'context_length_exceeded' } };
}

function messageIn(text: string): string {
  try {
    return providerError(JSON.parse(text))?.message ?? text.slice(0, 2000);
  } catch {
    return text.slice(0, 2000);
  }
}

export function errorAnswer(
  dialect: DialectName,
  { response, refused }: WireAnswer,
): Extract<Outcome, { kind: 'refused' }> {
  const message = refused ? messageIn(refused.text) : response.message;
  const long = !response.success && response.metadata?.kind === 'context';
  const body = long ? tooLong(dialect, message) : errorBody(dialect, 'bad_request', message);
  return {
    kind: 'refused',
    status: 400,
    headers: { 'content-type': 'application/json' },
    text: JSON.stringify(body),
  };
}
