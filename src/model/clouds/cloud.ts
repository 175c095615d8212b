/** A cloud that serves models of others: the same dialects at other addresses, and requests that carry its own credentials. */

import type { Dialect, StreamEvent } from '../dialects/dialect.ts';
import { ModelConfigError } from '../failure.ts';
import type { ModelConfig } from '../modelConfig.ts';
import type { CloudName } from '../names.ts';

export interface SignedRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Headers that say who asks, and which credentials they were made of. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly generation: number;
}

/** The credentials of a run: shared by all its calls, got anew when the cloud refuses those that it took before. */
export interface CloudAuth {
  /** Rejects with CredentialError. */
  authorize(request: SignedRequest): Promise<Authorization>;
  /** A request of that generation was taken. */
  accepted(generation: number): void;
  /** A request of that generation was refused. True: others are there, so that asking again makes sense. */
  renew(generation: number): boolean;
  /** Values that must appear in no text. */
  secrets(): readonly string[];
  /** Where the credentials come from, for people. */
  readonly source: string;
}

export interface Cloud {
  readonly name: CloudName;
  /** Where its credentials come from without a key, for people. */
  readonly source: string;
  /** Packages that are loaded where no key is given. */
  readonly packages: readonly string[];
  /** The dialect as this cloud has it. */
  dialect(dialect: Dialect): Dialect;
  /** Rejects with ModelConfigError when a package is missing. */
  createAuth(config: ModelConfig, apiKey: string | undefined): Promise<CloudAuth>;
  /** Of a stream that is no server-sent events. */
  readEvents?(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent>;
  /** What it needs beside credentials is loaded here, once. */
  prepare?(): Promise<void>;
}

const isMissing = (error: unknown): boolean =>
  (error as { code?: string }).code === 'ERR_MODULE_NOT_FOUND' ||
  // Vite's own words for it.
  /^(Cannot find|Failed to (load|resolve)) (package|module|import|url)/i.test((error as Error).message);

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
    if (!isMissing(error)) throw error;
    const { message, fix } = missingText(cloud, packages);
    throw new ModelConfigError('PROVIDER_NOT_CONFIGURED', `${message}; ${fix}`);
  }
}
