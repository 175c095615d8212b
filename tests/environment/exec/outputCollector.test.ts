// The bounded collector and the decoding of its bytes.

import { describe, expect, test } from 'vitest';
import { createCollector, decodeUtf8 } from '../../../src/environment/exec/outputCollector.ts';
import fc from '../../support/property.ts';

const collect = (chunks: readonly Uint8Array[], max: number) => {
  const collector = createCollector(max);
  for (const chunk of chunks) collector.push(chunk);
  return collector.finish();
};

describe('collector', () => {
  test('whatever the chunks, head and tail are the first and last bytes and the counts add up', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 40 }),
        fc.integer({ min: 2, max: 2000 }),
        (chunks, max) => {
          const whole = Buffer.concat(chunks);
          const { raw, totalBytes, omittedBytes } = collect(chunks, max);
          expect(totalBytes).toBe(whole.length);
          expect(raw.length + omittedBytes).toBe(whole.length);
          if (whole.length <= max) expect(Buffer.from(raw).equals(whole)).toBe(true);
          else {
            const head = Math.ceil(max / 2);
            expect(
              Buffer.from(raw).equals(
                Buffer.concat([whole.subarray(0, head), whole.subarray(whole.length - (max - head))]),
              ),
            ).toBe(true);
          }
        },
      ),
    );
  });

  test('a million chunks of one byte cost no more than their bytes', () => {
    const held = () => process.memoryUsage().external + process.memoryUsage().arrayBuffers;
    const collector = createCollector(1024 * 1024);
    const before = held();
    const chunk = Buffer.alloc(65_536, 120);
    for (let i = 0; i < 1_000_000; i += 1) collector.push(chunk.subarray(i % 65_536, (i % 65_536) + 1));
    expect(held() - before).toBeLessThan(8 * 1024 * 1024);
    expect(collector.finish().totalBytes).toBe(1_000_000);
  });

  test('the cut makes no half characters, and counts none as replaced', () => {
    const { output, replacedBytes, omittedBytes, raw } = collect([Buffer.from('😀'.repeat(100))], 50);
    expect(replacedBytes).toBe(0);
    expect(output).toMatch(/^(😀)+\n… 350 bytes omitted …\n(😀)+$/u);
    expect([omittedBytes, raw.length]).toEqual([350, 50]);
  });
});

describe('decoding', () => {
  test.each([
    [[0x61], 'a', 0],
    [[0xff, 0xfe], '\ufffd\ufffd', 2],
    [[0xef, 0xbf, 0xbd, 0xff], '\ufffd\ufffd', 1],
    [[0xef, 0xbb, 0xbf, 0x61], '\ufeffa', 0],
    [[0xf0, 0x9f, 0x98], '\ufffd', 1],
  ])('%j', (bytes, text, replaced) => {
    expect(decodeUtf8(Uint8Array.from(bytes))).toEqual({ text, replaced });
  });
});
