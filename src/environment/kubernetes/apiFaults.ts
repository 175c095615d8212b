/** What an answer of the API server means that is no success. Pure: the tests read recorded answers. */
import { recordOf } from '../../base/isRecord.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError, type EnvironmentErrorCode } from '../environment.ts';

export type ApiMeaning =
  /** It is not there. */
  | 'gone'
  /** The namespace itself is gone or going. */
  | 'namespace_gone'
  /** The same name is taken, or what was read is too old: ask anew. */
  | 'again'
  /** A quota is used up: room comes when others end. */
  | 'no_room'
  /** The server does not answer, or not now. */
  | 'away'
  | 'credentials'
  | 'forbidden'
  | 'refused';

/** What `@kubernetes/client-node` rejects with: a status and a body, or an error of the network. */
export function readApiFault(error: unknown) {
  const { code, body } = recordOf(error) as { code?: unknown; body?: unknown };
  if (typeof code !== 'number')
    return { meaning: 'away' as const, status: undefined, text: networkText(error) };
  const answer = statusOf(body);
  const text = answer.message || `the API server answered ${code}`;
  return { meaning: meaningOf(code, answer), status: code, text };
}

/** fetch says "fetch failed"; its cause says why. */
const networkText = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return errorText(cause) || 'no answer';
};

interface Answer {
  readonly reason: string;
  readonly message: string;
  readonly kind: string;
}

/** A `Status` object, as JSON text or read already. A proxy before the server answers with a page. */
function statusOf(body: unknown): Answer {
  let read: unknown = body;
  if (typeof body === 'string')
    try {
      read = JSON.parse(body);
    } catch {
      return { reason: '', kind: '', message: body.slice(0, 300).trim() };
    }
  const { reason, message, details } = recordOf(read);
  const { kind } = recordOf(details);
  return {
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
    kind: typeof kind === 'string' ? kind : '',
  };
}

function meaningOf(status: number, { reason, message, kind }: Answer): ApiMeaning {
  if (status === 401) return 'credentials';
  if (status === 403) {
    if (/exceeded quota|insufficient quota/i.test(message)) return 'no_room';
    if (/because it is being terminated/i.test(message)) return 'namespace_gone';
    // Whatever a rule or a webhook refuses, no right of ours would change.
    return /denied the request|violates PodSecurity|unable to validate against any|is forbidden: (?:exceeded|maximum|minimum)/i.test(
      message,
    )
      ? 'refused'
      : 'forbidden';
  }
  if (status === 404) return kind === 'namespaces' ? 'namespace_gone' : 'gone';
  if (status === 409) {
    // The quota's own record was written by two at once.
    return 'again';
  }
  if (status === 410 || reason === 'Expired') return 'again';
  if (status === 429 || status >= 500) return 'away';
  return 'refused';
}

const CODES: Readonly<Record<ApiMeaning, EnvironmentErrorCode>> = {
  gone: 'died',
  namespace_gone: 'start_failed',
  again: 'start_failed',
  no_room: 'start_failed',
  away: 'daemon_lost',
  credentials: 'daemon_lost',
  forbidden: 'start_failed',
  refused: 'start_failed',
};

const FIXES: Partial<Record<ApiMeaning, string>> = {
  namespace_gone: 'make the namespace again, with its rights and its network policy',
  credentials: 'the token may have expired: log in to the cluster again and resume',
  // A namespace that was removed took the rights in it along, and the account may not ask for the namespace itself.
  forbidden:
    'give the account the rights of docs/kubernetes/setup, or make the namespace again with them if it was removed',
  refused: 'a rule of the cluster refuses the pod: see environment.kubernetes.pod_template',
  away: 'the API server does not answer; resume when it does',
};

/** `what`: what was being done, as in "making a pod". */
export function apiError(error: unknown, what: string): EnvironmentError {
  const { meaning, status, text } = readApiFault(error);
  const fix = FIXES[meaning];
  return new EnvironmentError(CODES[meaning], `${what}: ${text}${fix ? `; ${fix}` : ''}`, {
    evidence: { cluster: meaning, status: status ?? null, answer: text },
    cause: error,
  });
}
