/** What carries commands into a container: the supervisor's stream, or one exec each. Both report facts; channel.ts gives them meaning. */
import { randomBytes } from 'node:crypto';
import type { CollectedOutput, OutputCollector } from './outputCollector.ts';

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
    }
  | { readonly kind: 'refused'; readonly why: 'nocwd' | 'nofile' | 'nofork' }
  | { readonly kind: 'lost' }
  /** Nothing of the command ran; what came back is the runtime's text and no output. */
  | { readonly kind: 'unstarted' };

export interface RunningCommand {
  /** Resolves when the end mark came or the stream ended. */
  readonly ended: Promise<CommandEnd>;
  /** Asks for the death of everything the command started; `ended` resolves afterwards. */
  kill(): void;
  output(): CollectedOutput;
  readonly transport: 'supervisor' | 'supervisor-file' | 'exec';
}

export interface Transport {
  readonly name: 'supervisor' | 'exec';
  run(command: TransportCommand): Promise<RunningCommand>;
  /** Kills every process but the container's own and the transport's. False when that could not be done. */
  killAll(): Promise<boolean>;
  /** Drops streams, e.g. after the container was restarted; the next `run` opens new ones. */
  reset(): void;
  lastWords(): string;
  close(): void;
}

/** Unknown to every command: what marks its processes, and its end. */
export const newNonce = () => randomBytes(12).toString('hex');

/** One argv string may have 131,071 bytes and its NUL (MAX_ARG_STRLEN); anything longer travels in a file. */
export const MAX_ARGV_BYTES = 131_071;

const RS = 0x1e;

function parseEnd(text: string): CommandEnd {
  const [status, ooms, held, refused] = text.trim().split(' ');
  if (status === 'nocwd' || status === 'nofile' || status === 'nofork')
    return { kind: 'refused', why: status };
  return {
    kind: 'exit',
    code: Number(status),
    oomKills: Number(ooms),
    held: held === '1',
    forksRefused: Number(refused ?? 0),
  };
}

/**
 * Separates a command's output from its end mark, `RS nonce status oomKills held forksRefused RS`. The nonce is unknown to the command, so it
 * cannot end itself by printing. Bytes that could be the beginning of a mark cut in two are held back.
 */
export function createMarkScanner(
  endNonce: string,
  collector: OutputCollector,
  onEnd: (end: CommandEnd) => void,
): (chunk: Buffer) => void {
  const endMark = Buffer.from(`\x1e${endNonce} `);
  let held = Buffer.alloc(0);
  return (chunk) => {
    const data = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    held = Buffer.alloc(0);
    const at = data.indexOf(endMark);
    if (at >= 0) {
      const close = data.indexOf(RS, at + endMark.length);
      if (at > 0) collector.push(data.subarray(0, at));
      if (close < 0) held = Buffer.from(data.subarray(at));
      else onEnd(parseEnd(data.toString('latin1', at + endMark.length, close)));
      return;
    }
    let keepFrom = data.indexOf(RS, Math.max(0, data.length - endMark.length + 1));
    while (keepFrom >= 0 && data.compare(endMark, 0, data.length - keepFrom, keepFrom) !== 0)
      keepFrom = data.indexOf(RS, keepFrom + 1);
    if (keepFrom < 0) collector.push(data);
    else {
      if (keepFrom > 0) collector.push(data.subarray(0, keepFrom));
      held = Buffer.from(data.subarray(keepFrom));
    }
  };
}
