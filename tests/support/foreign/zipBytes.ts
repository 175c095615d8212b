// Zip archives byte by byte, so that they can be wrong where a test wants it.
import { crc32 } from 'node:zlib';

export interface ZipPart {
  readonly name: string;
  /** What stands in the archive. */
  readonly stored: Buffer;
  /** 0 stored, 8 deflate, 93 zstd. */
  readonly method: number;
  /** What the directory claims; the checksum is of this text where it is given. */
  readonly plain?: Buffer;
  readonly claimedSize?: number;
  readonly flags?: number;
  /** The directory names this place, and nothing is written for it: the body of another entry. */
  readonly at?: number;
}

export function zipBytes(parts: readonly ZipPart[]): Buffer {
  const local: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, stored, method, plain = stored, claimedSize = plain.length, flags = 0, at } of parts) {
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(flags, 2);
    fields.writeUInt16LE(method, 4);
    fields.writeUInt32LE(crc32(plain), 10);
    fields.writeUInt32LE(stored.length, 14);
    fields.writeUInt32LE(claimedSize, 18);
    fields.writeUInt16LE(Buffer.byteLength(name), 22);
    const head = Buffer.concat([Buffer.from('PK\x03\x04'), fields, Buffer.from(name)]);
    const more = Buffer.alloc(14);
    more.writeUInt32LE(at ?? offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), fields, more, Buffer.from(name)]));
    if (at !== undefined) continue;
    local.push(head, stored);
    offset += head.length + stored.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(parts.length, 8);
  end.writeUInt16LE(parts.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...local, entries, end]);
}
