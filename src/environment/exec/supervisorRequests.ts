/** What the host writes to the supervisor; supervisor.sh and keeper.sh read it. */
import { MAX_ARGV_BYTES, type TransportCommand } from './transport.ts';

export const MODE = { argument: 0, file: 1, harness: 2 } as const;

const LENGTH_DIGITS = 9;

/** A letter, the length, the payload: a shell reads a known number of bytes in one go, and a line byte by byte. */
export function requestOf(letter: string, payload: string | Buffer): Buffer {
  const body = Buffer.from(payload);
  return Buffer.concat([Buffer.from(`${letter}${String(body.length).padStart(LENGTH_DIGITS, '0')}`), body]);
}

export function encodeRequest(request: TransportCommand, mark: string, nonces: string, mode: number): Buffer {
  const cwd = Buffer.from(request.cwd);
  const command = Buffer.from(request.command);
  const entries = Object.entries(request.env).map(([name, value]) => Buffer.from(`${name}=${value}`));
  const body = Buffer.concat([cwd, ...entries, command]);
  const lengths = entries.map((entry) => entry.length).join(' ');
  const line = `${mark} ${nonces} ${cwd.length} ${command.length} ${mode} ${entries.length} ${lengths}\n`;
  return requestOf('R', Buffer.concat([Buffer.from(line), body]));
}

export function modeOf({ harness, command }: TransportCommand): number {
  if (harness) return MODE.harness;
  return Buffer.byteLength(command) > MAX_ARGV_BYTES ? MODE.file : MODE.argument;
}
