/** Amazon's signature version 4, computed from its specification and not with the library that signs. */
import { createHash, createHmac } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Asked } from './cloudServer.ts';

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();

/** Each part of the path is encoded once more than it was sent. */
const canonicalPath = (path: string) =>
  path
    .split('/')
    .map((part) =>
      encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`),
    )
    .join('/');

/** What is wrong with the signature; null when it is right. */
export function signatureProblem(asked: Asked, secret: string): string | null {
  const found =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      asked.headers.authorization ?? '',
    );
  if (!found) return `no signature in "${asked.headers.authorization}"`;
  const [, , date, region, service, names, signature] = found as unknown as string[];
  const time = asked.headers['x-amz-date']!;
  const [path, query = ''] = asked.url.split('?');
  const signed = names!.split(';');
  for (const needed of ['host', 'x-amz-date', 'content-type'])
    if (!signed.includes(needed)) return `${needed} is not signed`;
  const canonical = [
    asked.method,
    canonicalPath(path!),
    query,
    ...signed.map((name) => `${name}:${asked.headers[name]!.trim().replace(/\s+/g, ' ')}`),
    '',
    names,
    sha256(asked.bytes),
  ].join('\n');
  const scope = `${date}/${region}/${service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key = ['aws4_request', service!, region!, date!].reduceRight<Buffer | string>(
    (made, part) => hmac(made, part),
    `AWS4${secret}`,
  );
  const expected = createHmac('sha256', key).update(toSign).digest('hex');
  return expected === signature ? null : `expected ${expected}, got ${signature}`;
}

/** One frame of an event stream, by its specification. */
function frame(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, head, body]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, checksum]);
}

export const eventFrame = (data: unknown): Buffer =>
  frame(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({ bytes: Buffer.from(JSON.stringify(data)).toString('base64'), p: 'abc' }),
  );

export const exceptionFrame = (kind: string, message: string): Buffer =>
  frame(
    { ':exception-type': kind, ':content-type': 'application/json', ':message-type': 'exception' },
    JSON.stringify({ message }),
  );
