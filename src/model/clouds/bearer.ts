/** Requests that carry a token, given once or got from a library. */
import { type Clock, systemClock } from '../limits/clock.ts';
import type { CloudAuth } from './cloud.ts';
import { CredentialError, createCredentials, credentialError } from './cloudCredentials.ts';

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
