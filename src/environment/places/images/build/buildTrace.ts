/**
 * What BuildKit says of a build: messages of moby.buildkit.v1.StatusResponse in base64, of which the names of steps, their errors and the output of
 * their commands are read. The decoder of the client library gives the output as base64.
 */

type Field = { readonly id: number; readonly bytes?: Buffer };

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Fields of one message; what is cut off ends it. */
function* fieldsOf(message: Buffer): Generator<Field> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; at < message.length; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < message.length) {
    const tag = varint();
    const [id, kind] = [Math.floor(tag / 8), tag % 8];
    if (kind === BYTES) {
      const length = varint();
      yield { id, bytes: message.subarray(at, at + length) };
      at += length;
    } else if (kind === VARINT) varint();
    else if (kind === FIXED64) at += 8;
    else if (kind === FIXED32) at += 4;
    else return;
  }
}

function textsOf(message: Buffer, ids: Readonly<Record<string, number>>): Record<string, string | undefined> {
  const found = new Map<number, string>();
  for (const { id, bytes } of fieldsOf(message)) if (bytes) found.set(id, bytes.toString('utf8'));
  return Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, found.get(id)]));
}

const STEP = { name: 3, started: 5, completed: 6, error: 7 };
const OUTPUT = { message: 4 };

/** Steps as they begin and fail, and what their commands print. */
export function traceText(base64: string): string {
  const lines: string[] = [];
  for (const { id, bytes } of fieldsOf(Buffer.from(base64, 'base64'))) {
    if (!bytes) continue;
    if (id === 1) {
      const { name, started, completed, error } = textsOf(bytes, STEP);
      if (error) lines.push(`${error}\n`);
      else if (name && started !== undefined && completed === undefined) lines.push(`${name}\n`);
    } else if (id === 3) lines.push(textsOf(bytes, OUTPUT).message ?? '');
  }
  return lines.join('');
}
