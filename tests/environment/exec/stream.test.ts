// Docker's frames and our end marks, however the bytes are cut.

import { describe, expect, test } from 'vitest';
import { createDemux } from '../../../src/environment/docker/demux.ts';
import { createCollector } from '../../../src/environment/exec/outputCollector.ts';
import { type CommandEnd, createMarkScanner } from '../../../src/environment/exec/transport.ts';
import fc from '../../support/property.ts';

const frame = (type: number, data: Uint8Array) => {
  const header = Buffer.alloc(8);
  header[0] = type;
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, data]);
};

/** Cuts a buffer at the given places. */
const cut = (data: Buffer, at: readonly number[]) => {
  const places = [...new Set(at.map((n) => n % (data.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, i) => data.subarray(from, places[i] ?? data.length));
};

describe('demux', () => {
  test('any frames in any chunks come out in order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(1, 2), fc.uint8Array({ maxLength: 50 })), { maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        (frames, places) => {
          const got: Buffer[][] = [[], [], []];
          const feed = createDemux((type, data) => got[type]!.push(Buffer.from(data)));
          for (const chunk of cut(Buffer.concat(frames.map(([type, data]) => frame(type, data))), places))
            feed(chunk);
          for (const type of [1, 2])
            expect(
              Buffer.concat(got[type]!).equals(
                Buffer.concat(frames.filter((f) => f[0] === type).map((f) => f[1])),
              ),
            ).toBe(true);
        },
      ),
    );
  });

  test('twenty thousand tiny frames in one chunk do not overflow the stack', () => {
    let bytes = 0;
    const feed = createDemux((_type, data) => {
      bytes += data.length;
    });
    feed(Buffer.concat(Array.from({ length: 20_000 }, () => frame(1, Buffer.from('x')))));
    expect(bytes).toBe(20_000);
  });
});

describe('end mark', () => {
  const scanAll = (chunks: readonly Buffer[]) => {
    const collector = createCollector(1_000_000);
    let end: CommandEnd | undefined;
    const scan = createMarkScanner('0123456789ab', collector, (how) => {
      end = how;
    });
    for (const chunk of chunks) if (!end) scan(chunk);
    return { end, raw: Buffer.from(collector.finish().raw) };
  };

  test('is found wherever the stream is cut, and the output is exact', () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.constant(Uint8Array.from([0x1e, 0x1e])),
      fc.constant(Buffer.from('\x1e0123456789a')),
      fc.constant(Buffer.from('\x1e0123456789ax ')),
    );
    fc.assert(
      fc.property(
        fc.array(noise, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (parts, places) => {
          const output = Buffer.concat(parts);
          const stream = Buffer.concat([output, Buffer.from('\x1e0123456789ab 42 1 1 3\x1e')]);
          const { end, raw } = scanAll(cut(stream, places));
          expect(end).toEqual({ kind: 'exit', code: 42, oomKills: 1, held: true, forksRefused: 3 });
          expect(raw.equals(output)).toBe(true);
        },
      ),
    );
  });

  test('a shell that could not fork says that the command was not run', () => {
    expect(scanAll([Buffer.from('\x1e0123456789ab nofork\x1e')])).toMatchObject({
      end: { kind: 'refused', why: 'nofork' },
      raw: Buffer.alloc(0),
    });
  });

  test('a mark of another command is output', () => {
    const { end, raw } = scanAll([
      Buffer.from('\x1effffffffffff 0 0 0 0\x1e'),
      Buffer.from('\x1e0123456789ab nocwd\x1e'),
    ]);
    expect(end).toEqual({ kind: 'refused', why: 'nocwd' });
    expect(raw.toString()).toBe('\x1effffffffffff 0 0 0 0\x1e');
  });
});
