/** The carriers of commands into a container: the supervisor's stream, or one exec each. Both report facts; channel.ts gives them meaning. */

import { randomUUID } from 'node:crypto';
import type { EnvironmentError, LeftRunning } from '../environment.ts';
import type { CollectedOutput } from './outputCollector.ts';

export interface TransportCommand {
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly maxOutputBytes: number;
  /** Run by the harness with `bash -p -c` (`sh -c` where there is no bash), not by the configured interpreter. */
  readonly harness?: boolean;
}

export type CommandEnd =
  | {
      readonly kind: 'exit';
      readonly code: number;
      readonly oomKills: number;
      /** A process still has the stream open. */
      readonly held: boolean;
      /** How often the process limit refused a fork meanwhile. */
      readonly forksRefused: number;
      /** The stream of its output was gone before it ended. */
      readonly cutShort?: boolean;
    }
  | { readonly kind: 'refused'; readonly why: 'nocwd' | 'nofile' | 'nofork' }
  | { readonly kind: 'lost' }
  /** The report cannot be our script's, or contradicts what the script wrote. */
  | { readonly kind: 'forged'; readonly evidence: string }
  /** Nothing of the command ran; what came back is the runtime's text and no output. */
  | { readonly kind: 'unstarted' };

export interface RunningCommand {
  /** Resolves when it has begun, or will not; absent where it begins at once. The engine's time until then is not the command's. */
  readonly begun?: Promise<void>;
  /** Resolves when the end was reported and the output is complete, or when the stream ended. */
  readonly ended: Promise<CommandEnd>;
  /** Asks for the death of everything the command started; `ended` resolves afterwards. The promise resolves when nothing more is tried. */
  kill(): Promise<void> | undefined;
  output(): CollectedOutput;
  /** Whether nothing of a lost command ran, and nothing will. Absent where nobody could tell. */
  neverBegan?(): Promise<boolean>;
  readonly transport: 'supervisor' | 'supervisor-file' | 'exec';
}

export interface Transport {
  readonly name: 'supervisor' | 'exec';
  run(command: TransportCommand): Promise<RunningCommand>;
  /** Kills every process but the container's own and the transport's. False when that could not be done. */
  killAll(): Promise<boolean>;
  /** Processes that `killAll` would kill; undefined where they are not known. Absent where they cannot be. */
  left?(): Promise<LeftRunning | undefined>;
  /** Drops streams, before the container is started anew; the next `run` opens new ones. */
  reset(): void;
  lastWords(): string;
  close(): void;
}

/** A mark of a command's processes, or of its end. Node has a store of UUIDs ready; for random bytes it asks each time, which takes longer. */
export const newNonce = () => randomUUID().replaceAll('-', '').slice(8);

/** One argv string may have 131,071 bytes and its NUL (MAX_ARG_STRLEN); anything longer travels in a file. */
export const MAX_ARGV_BYTES = 131_071;

interface ProcessEvents {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
  /** The streams ended or broke; may be called more than once. */
  gone(): void;
}

/** A process started there, with its streams in hand. */
export interface ContainerProcess {
  /** Nothing is read before. */
  listen(events: ProcessEvents): void;
  write(data: Buffer | string): void;
  pause(): void;
  resume(): void;
  /** Lets go of the streams; the process itself may live on. */
  destroy(): void;
  /** The engine's own word on how the process ended; undefined when it has not ended within seconds. */
  exitCode(): Promise<number | undefined>;
  /** The engine has no word while somebody holds the streams, and has none once they are let go. */
  readonly wordComesLast?: boolean;
}

export type StartProcess = (
  argv: readonly string[],
  options?: { readonly env?: readonly string[]; readonly stdin?: boolean },
) => Promise<ContainerProcess>;

/** The channel's needs beside running commands. */
export interface ContainerControl {
  /** undefined while it runs. */
  death(evidence: Readonly<Record<string, unknown>>): Promise<EnvironmentError | undefined>;
  /** Kills every process and starts again with the same file system. Null where that cannot be: what is stuck there ends as it is. */
  readonly restart: (() => Promise<void>) | null;
  /** Watches the writable layer while a command runs; calls back once when it is over the limit. Returns the end of the watch. */
  watchDisk(onFull: (usedBytes: number) => void): () => void;
}
