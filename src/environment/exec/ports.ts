/** What this room asks of the place where commands run, be it a container of Docker or of another engine. */
import type { EnvironmentError } from '../environment.ts';

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

/** What the channel needs to know and to do beside running commands. */
export interface ContainerControl {
  /** undefined while it runs. */
  death(evidence: Readonly<Record<string, unknown>>): Promise<EnvironmentError | undefined>;
  /** Kills every process and starts again with the same file system. */
  restart(): Promise<void>;
  /** Watches the writable layer while a command runs; calls back once when it is over the limit. Returns the end of the watch. */
  watchDisk(onFull: (usedBytes: number) => void): () => void;
}
