/** Credentials that run out: got when they are needed, kept by their library while they are good, and got anew when the cloud refuses them. */
import { type Clock, formatDuration, systemClock } from '../limits/clock.ts';
import type { CloudAuth } from './cloud.ts';

/** No credentials, or none that can be had now. Nothing was asked of the model. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
  /** The place they come from did not answer: later it may. */
  readonly passing: boolean;
  constructor(message: string, passing: boolean, cause?: unknown) {
    super(message, { cause });
    this.passing = passing;
  }
}

interface Held<T> {
  readonly value: T;
  readonly generation: number;
}

export interface Credentials<T> {
  current(): Promise<Held<T>>;
  accepted(generation: number): void;
  renew(generation: number): boolean;
}

/** `open` makes a source with an empty memory; the source itself knows how long its answers are good. `again`: earlier ones were refused. */
export function createCredentials<T>(open: (again: boolean) => () => Promise<T>): Credentials<T> {
  let generation = 0;
  let taken = -1;
  let source = open(false);
  return {
    async current() {
      const mine = generation;
      return { value: await source(), generation: mine };
    },
    accepted(of) {
      taken = Math.max(taken, of);
    },
    renew(of) {
      // Another call has renewed them meanwhile: this one only asks again.
      if (of < generation) return true;
      if (taken < of) return false;
      generation += 1;
      source = open(true);
      return true;
    },
  };
}

/** AWS, Google and Azure about a clock that is wrong. */
const SKEWED = [
  /signature expired|signature not yet current|requesttimetooskewed|not yet valid/i,
  /reasonable timeframe|iat and exp|time range|clock skew/i,
];
const EXPIRED = /expired|\bexpir(y|ation)\b/i;

/** What a refusal of credentials is about, as a part of a sentence; null where it does not say. `date` is the header of the answer. */
export function refusedBecause(text: string, date: string | undefined, wallNow: number): string | null {
  const said = text.slice(0, 4000);
  if (SKEWED.some((wording) => wording.test(said))) {
    const off = date === undefined ? Number.NaN : wallNow - Date.parse(date);
    const by = Number.isNaN(off)
      ? 'wrong'
      : `${formatDuration(Math.abs(off))} ${off > 0 ? 'ahead of' : 'behind'} the provider's`;
    return `the clock of this machine is ${by}: set it by NTP`;
  }
  return EXPIRED.test(said) ? 'the credentials have expired: get new ones' : null;
}

const PASSING = /ECONN|ETIMEDOUT|EAI_AGAIN|ENOTFOUND|timed? ?out|socket|network|\b50[0-9]\b|\b429\b/i;

/** Of what a library of a cloud threw. */
export function credentialError(source: string, thrown: unknown, wallNow: number): CredentialError {
  const message = String((thrown as Error | null)?.message ?? thrown)
    .split('\n')[0]!
    .slice(0, 300);
  const why = refusedBecause(message, undefined, wallNow);
  return new CredentialError(
    `no credentials from ${source}: ${message}${why === null ? '' : ` — ${why}`}`,
    why === null && PASSING.test(message),
    thrown,
  );
}

type HeaderOf = (token: string) => Record<string, string>;

export const bearer: HeaderOf = (token) => ({ authorization: `Bearer ${token}` });

/** A token or key that somebody put into a variable: it cannot be got anew. */
export const fixedToken = (token: string, source: string, header: HeaderOf = bearer): CloudAuth => ({
  authorize: async () => ({ headers: header(token), generation: 0 }),
  accepted: () => undefined,
  renew: () => false,
  secrets: () => [token],
  source,
});

/** `open` makes a client of the library with an empty memory, which gives a token that is good now. */
export function libraryToken(
  open: (again: boolean) => () => Promise<string | null | undefined>,
  source: string,
  clock: Clock = systemClock,
): CloudAuth {
  const credentials = createCredentials(open);
  const secrets = new Set<string>();
  return {
    async authorize() {
      let held: { value: string | null | undefined; generation: number };
      try {
        held = await credentials.current();
      } catch (error) {
        throw credentialError(source, error, clock.wall());
      }
      const { value: token, generation } = held;
      if (!token) throw new CredentialError(`no credentials from ${source}: they gave no token`, false);
      secrets.add(token);
      return { headers: bearer(token), generation };
    },
    accepted: credentials.accepted,
    renew: credentials.renew,
    secrets: () => [...secrets],
    source,
  };
}
