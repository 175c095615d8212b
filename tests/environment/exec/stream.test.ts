// Docker's frames, and what tells the end of a command, however the bytes are cut.

import { describe, expect, test } from 'vitest';
import { createDemux } from '../../../src/environment/docker/startProcess.ts';
import {
  createFenceFinder,
  createFrameReader,
  fenceOf,
  parseEnd,
} from '../../../src/environment/exec/endReport.ts';
import { cpuMs } from '../../support/cpuTime.ts';
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

describe('fence behind the output', () => {
  const NONCE = '0123456789abcdef01234567';
  const findAll = (chunks: readonly Buffer[]) => {
    const before: Buffer[] = [];
    let after: Buffer | undefined;
    const find = createFenceFinder(fenceOf(NONCE), (data) => before.push(Buffer.from(data)));
    for (const chunk of chunks) after = after ? Buffer.concat([after, chunk]) : find(chunk);
    return { before: Buffer.concat(before), after };
  };

  test('is found wherever the stream is cut, and the output is exact', () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.constant(Uint8Array.from([0x1e, 0x1e])),
      fc.constant(Buffer.from(fenceOf(NONCE).slice(0, -2))),
      fc.constant(Buffer.from(`\x1e${NONCE} 0 0 0 0\x1e`)),
      fc.constant(Buffer.from(fenceOf('f'.repeat(24)))),
    );
    fc.assert(
      fc.property(
        fc.array(noise, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (parts, places) => {
          const output = Buffer.concat(parts);
          fc.pre(!output.includes(fenceOf(NONCE)));
          const stream = Buffer.concat([output, Buffer.from(`${fenceOf(NONCE)}later`)]);
          const { before, after } = findAll(cut(stream, places));
          expect(before.equals(output)).toBe(true);
          expect(after?.toString()).toBe('later');
        },
      ),
    );
  });

  test('bytes that never become a fence are passed on: 40 MB in small chunks, as fast as they come', () => {
    let bytes = 0;
    const find = createFenceFinder(fenceOf(NONCE), (data) => {
      bytes += data.length;
    });
    const took = cpuMs(() => {
      find(Buffer.from(`\x1e${NONCE} `));
      for (let i = 0; i < 10_000; i += 1) find(Buffer.alloc(4096, i % 2 ? '\x1e' : '\x1e0'));
    });
    expect(bytes).toBeGreaterThan(40_000_000);
    expect(took).toBeLessThan(10_000);
  });
});

describe('frames of the end', () => {
  const readAll = (chunks: readonly Buffer[]) => {
    const frames: string[] = [];
    const read = createFrameReader((text) => frames.push(text));
    for (const chunk of chunks) read(chunk);
    return frames;
  };

  test('come out whole wherever they are cut, also behind one that never ends', () => {
    const stream = Buffer.from(`bash: no\n\x1epid 7\x1e\x1e${'x'.repeat(5000)}\x1eend 7 0 0 0\x1e`);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), (places) => {
        expect(readAll(cut(stream, places))).toEqual(['pid 7', 'end 7 0 0 0']);
      }),
    );
  });

  test('one that never ends costs neither memory nor time', () => {
    const chunks = [Buffer.from('\x1eend '), ...Array(20_000).fill(Buffer.alloc(4096, '1'))];
    expect(cpuMs(() => expect(readAll(chunks)).toEqual([]))).toBeLessThan(10_000);
  });

  test('every number is read strictly; what is no end is told as such', () => {
    expect(parseEnd('42 1 1 3')).toEqual({
      kind: 'exit',
      code: 42,
      oomKills: 1,
      held: true,
      forksRefused: 3,
    });
    for (const why of ['nocwd', 'nofile', 'nofork']) expect(parseEnd(why)).toEqual({ kind: 'refused', why });
    const impossible = [
      'NaN 0 0 0',
      '1e400 0 0 0',
      '0 NaN 0 0',
      '0 1e400 0 0',
      '256 0 0 0',
      '-1 0 0 0',
      '0 -1 0 0',
      '0x1 0 0 0',
      '0 0 2 0',
      '0 0 0',
      '0 0 0 0 0',
      ' 0 0 0 0',
      '0 0 0 0\n',
      '0 0 0 9999999999999999',
      '',
      'nofork ',
    ];
    for (const text of impossible) expect(parseEnd(text), text).toMatchObject({ kind: 'forged' });
  });
});
