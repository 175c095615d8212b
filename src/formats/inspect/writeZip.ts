/** A zip archive of texts, compressed. Of more than 4 GB the form has other fields, which nothing here needs. */
import { crc32, deflateRawSync } from 'node:zlib';

const DEFLATE = 8;
/** The first of January 1980: an archive of the same texts has the same bytes. */
const DATE = 0x0021;

interface Part {
  readonly name: string;
  readonly text: string;
}

export function zipOf(parts: Iterable<Part>): Uint8Array {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, text } of parts) {
    const plain = Buffer.from(text);
    const packed = deflateRawSync(plain);
    const id = Buffer.from(name);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    // Names are UTF-8.
    fields.writeUInt16LE(0x0800, 2);
    fields.writeUInt16LE(DEFLATE, 4);
    fields.writeUInt16LE(DATE, 8);
    fields.writeUInt32LE(crc32(plain), 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(plain.length, 18);
    fields.writeUInt16LE(id.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, place, id);
    const head = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, id]);
    bodies.push(head, packed);
    offset += head.length + packed.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  const count = directory.length / 4;
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, entries, end]);
}
