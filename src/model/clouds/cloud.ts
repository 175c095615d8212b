/**
 * A cloud that serves models of others: the same dialects at other addresses, and requests that carry its own credentials. Credentials run out:
 * they are got when they are needed, kept by their library while they are good, and got anew when the cloud refuses them.
 */

import { isMissingPackage } from '../../base/missingPackage.ts';
import type { Dialect, StreamEvent } from '../dialects/dialect.ts';
import { formatDuration, systemClock } from '../limits/clock.ts';
import { ModelConfigError } from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import type { CloudName } from '../names.ts';

interface SignedRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Headers that name the caller, and the generation of the credentials in them. */
interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly generation: number;
}

/** The credentials of a run: shared by all its calls, got anew when the cloud refuses those that it took before. */
export interface CloudAuth {
  /** Rejects with CredentialError. */
  authorize(request: SignedRequest): Promise<Authorization>;
  /** A request of that generation was taken. */
  accepted(generation: number): void;
  /**
   * A request of that generation was refused. True: others are there, so that asking again makes sense (observed:
   * tests/model/clouds/bedrock.test.ts).
   */
  renew(generation: number): boolean;
  /** Values that must appear in no text. */
  secrets(): readonly string[];
  /** The place of the credentials, for people. */
  readonly source: string;
}

export interface Cloud {
  readonly name: CloudName;
  /** The place of its credentials without a key, for people. */
  readonly source: string;
  /** Packages that are loaded where no key is given. */
  readonly packages: readonly string[];
  /** The dialect as this cloud has it. */
  dialect(dialect: Dialect): Dialect;
  /** Rejects with ModelConfigError when a package is missing. */
  createAuth(config: ModelConfig, apiKey: string | undefined): Promise<CloudAuth>;
  /** The reader of a stream that is no server-sent events. */
  readEvents?(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent>;
  /** Loads the packages that the cloud needs beside credentials, once. */
  prepare?(): Promise<void>;
}

export const missingText = (cloud: string, packages: readonly string[]) => ({
  message: `${cloud}/ needs ${packages.length > 1 ? 'packages that are' : 'a package that is'} not installed: ${packages.join(', ')}`,
  fix: `npm install ${packages.join(' ')}`,
});

/** Rejects with ModelConfigError when one of `packages` is not there. `load` imports by the literal name, so that checkers see it. */
export async function loadPackages<T>(
  cloud: string,
  packages: readonly string[],
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissingPackage(error)) throw error;
    const { message, fix } = missingText(cloud, packages);
    throw new ModelConfigError(`${message}; ${fix}`);
  }
}

/** No credentials, or none at the moment. Nothing was asked of the model. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
  /** The place of the credentials did not answer: later it may. */
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

interface Credentials<T> {
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
      // Another call has renewed them meanwhile: this one only asks again (observed: tests/model/clouds/vertex.test.ts).
      if (of < generation) return true;
      if (taken < of) return false;
      generation += 1;
      source = open(true);
      return true;
    },
  };
}

/** AWS, Google and Azure about a clock that is wrong (observed: tests/model/clouds/bedrock.test.ts). */
const SKEWED = [
  /signature expired|signature not yet current|requesttimetooskewed|not yet valid/i,
  /reasonable timeframe|iat and exp|time range|clock skew/i,
];
const EXPIRED = /expired|\bexpir(y|ation)\b/i;

/** The cause of refused credentials, as a part of a sentence; null where the answer does not say it. `date` is the header of the answer. */
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

/** The error for a failure of a cloud's library. */
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
): CloudAuth {
  const credentials = createCredentials(open);
  const secrets = new Set<string>();
  return {
    async authorize() {
      let held: { value: string | null | undefined; generation: number };
      try {
        held = await credentials.current();
      } catch (error) {
        throw credentialError(source, error, systemClock.wall());
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
