/** Requests of the page to a run that works: they go through the record, as those of `swebatch ctl` do. */
import type { IncomingMessage } from 'node:http';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { errorText } from '../base/text/errorText.ts';
import { askRun } from '../run/askRun.ts';
import { UserError } from '../run/userError.ts';
import { databaseOf } from './laterRecord.ts';

export const CONTROL_PATH = '/api/control';
/** A form of another site cannot set it, and a script of one would have to ask first, which is refused. */
export const CONTROL_HEADER = 'x-swebatch-control';

const requestSchema = z.strictObject({
  run: z.string().min(1).max(500),
  command: z.string().max(100),
  argument: z.string().max(500).nullable(),
});

interface Answer {
  readonly status: number;
  readonly body: { readonly answer: string } | { readonly error: string };
}

const LONGEST_BYTES = 10_000;

/** Never rejects. */
export async function handleControl(results: string, request: IncomingMessage): Promise<Answer> {
  try {
    const read = await bodyOf(request);
    const asked = read === null ? null : requestSchema.safeParse(read);
    if (!asked?.success) return { status: 400, body: { error: 'this is no request to a run' } };
    const database = databaseOf(results);
    if (basename(database) !== 'swebatch.db')
      return { status: 409, body: { error: 'this file is a copy of a record; no run works on it' } };
    const by = `${request.socket.remoteAddress ?? '?'} (viewer)`;
    const { done, answer } = await askRun({ ...asked.data, root: dirname(database), by });
    return done ? { status: 200, body: { answer } } : { status: 409, body: { error: answer } };
  } catch (error) {
    const status = error instanceof UserError ? 409 : 500;
    return { status, body: { error: errorText(error) } };
  }
}

/** Null for what is too long or no JSON. */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LONGEST_BYTES) return null;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown;
  } catch {
    return null;
  }
}
