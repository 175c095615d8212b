// Output: exact bytes, bounded memory, nothing lost and nothing of another command.
import { describe, expect, test } from 'vitest';
import type { Bench, Suite } from './bench.ts';

const MB = 1024 * 1024;

/** Peak growth of this process's memory while `work` runs. */
async function rssGrowth<T>(work: () => Promise<T>): Promise<{ result: T; growth: number }> {
  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 50);
  try {
    const result = await work();
    return { result, growth: Math.max(peak, process.memoryUsage.rss()) - before };
  } finally {
    clearInterval(timer);
  }
}

export function outputSuite({ bench, shared }: Suite): void {
  describe('output', () => {
    test('bytes are exact: CRLF, CR, NUL, control characters, invalid UTF-8 [T-30]', async () => {
      const { raw, output, replacedBytes, exitCode } = await (await shared()).execute(
        String.raw`printf 'a\r\nb\rc\0d\x1ee\x1f\xff\xfe é \xf0\x9f\x98\x80 \xf0\x9f end'`,
      );
      const expected = Buffer.concat([
        Buffer.from('a\r\nb\rc\0d\x1ee\x1f'),
        Buffer.from([0xff, 0xfe]),
        Buffer.from(' é 😀 '),
        Buffer.from([0xf0, 0x9f]),
        Buffer.from(' end'),
      ]);
      expect(exitCode).toBe(0);
      expect(Buffer.from(raw).equals(expected)).toBe(true);
      expect(output).toContain('é 😀');
      expect(replacedBytes).toBe(3);
    });

    test('every byte value survives, also next to our own end mark', async () => {
      const { raw } = await (await shared()).execute(
        `python3 -c "import sys; sys.stdout.buffer.write(bytes(range(256))*300 + b'\\x1e' * 40)"`,
      );
      const expected = Buffer.concat([
        ...Array.from({ length: 300 }, () => Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i))),
        Buffer.alloc(40, 0x1e),
      ]);
      expect(Buffer.from(raw).equals(expected)).toBe(true);
    });

    test('a character written byte by byte is whole', async () => {
      const { output, replacedBytes } = await (await shared()).execute(
        `python3 -c "
import os, time
for b in '😀é€'.encode():
    os.write(1, bytes([b])); time.sleep(0.01)"`,
      );
      expect([output, replacedBytes]).toEqual(['😀é€', 0]);
    });

    test('long output keeps head and tail and counts the rest exactly', async () => {
      const env = await bench.start({ config: { max_output_bytes: 10_000 } });
      const result = await env.execute('seq 1 100000');
      const whole = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('');
      expect(result.totalBytes).toBe(whole.length);
      expect(result.omittedBytes).toBe(whole.length - 10_000);
      expect(Buffer.from(result.raw).toString()).toBe(whole.slice(0, 5000) + whole.slice(-5000));
      expect(result.output).toContain(`\n… ${whole.length - 10_000} bytes omitted …\n`);
    });

    test('a program that makes its output non-blocking does not disturb the next', async () => {
      const env = await shared();
      await env.execute('python3 -c "import os; os.set_blocking(1, False); os.set_blocking(2, False)"');
      const result = await env.execute('python3 -c "import sys; sys.stdout.write(\'x\' * 3000000)"');
      expect([result.exitCode, result.totalBytes]).toEqual([0, 3_000_000]);
    });

    test.skipIf(!bench.can.separateOutput)(
      'what a background process prints later belongs to no other command',
      async () => {
        const env = await bench.start();
        const first = await env.execute(
          '(sleep 1; for i in 1 2 3 4 5 6 7 8; do echo late; sleep 0.1; done) & echo now',
        );
        expect(first.output).toBe('now\n');
        const second = await env.execute('sleep 1.5; echo mine');
        expect(second.output).toBe('mine\n');
        const third = await env.execute('echo again');
        expect(third.output).toBe('again\n');
      },
    );

    test.skipIf(!bench.can.separateOutput)(
      'also when it holds the output under another number than 1 and 2',
      async () => {
        const env = await bench.start();
        const first = await env.execute('exec 7>&1; (sleep 0.3; echo late >&7) >/dev/null 2>&1 & echo now');
        expect(first.output).toBe('now\n');
        expect((await env.execute('sleep 0.8; echo mine')).output).toBe('mine\n');
      },
    );

    test.skipIf(!bench.can.separateOutput)(
      'also when it goes on writing there: the engine, cut off, would say 126 of a command that ended with 0',
      async () => {
        const env = await bench.start();
        const writes =
          'exec 7>&1; (while sleep 0.01; do echo late >&7 || exit; done) >/dev/null 2>&1 & echo now';
        for (let i = 0; i < 3; i += 1)
          expect(await env.execute(writes)).toMatchObject({
            output: expect.stringMatching(/^(now\n|late\n)+$/),
            exitCode: 0,
          });
        expect((await env.execute('echo mine')).output).toBe('mine\n');
      },
    );

    test.skipIf(!bench.can.separateOutput)(
      'also after many background processes that held theirs and have ended',
      async () => {
        const env = await bench.start();
        for (let i = 0; i < 10; i += 1) await env.execute(`sleep 0.1 & echo ${i}`);
        await env.execute('sleep 0.3');
        expect((await env.execute('(sleep 0.3; echo late) & echo now')).output).toBe('now\n');
        expect((await env.execute('sleep 1; echo mine')).output).toBe('mine\n');
      },
    );
  });
}

export interface FloodLimits {
  readonly rss: number;
  /** Seconds that `yes` may go on. */
  readonly yesS: number;
  readonly keptBytes: number;
  readonly zerosMB: number;
  /** What a command elsewhere may take meanwhile; null where other tests run beside it: then it only may not wait for the flood's end. */
  readonly othersMs: number | null;
}

/** The promise is 50 MB of memory at 2 GB, which tests/long holds; what is measured beside other tests gets three times the slack. */
export const BESIDE_OTHERS: FloodLimits = {
  ...{ rss: 150 * MB, yesS: 2, keptBytes: MB, zerosMB: 300, othersMs: null },
};

/** One after the other: what they measure is the memory of this process. */
export function floodSuite(bench: Bench, limits: FloodLimits): void {
  describe('floods [T-29]', { concurrent: false }, () => {
    const small = { max_output_bytes: limits.keptBytes };

    test('yes until the timeout costs little memory and does not hold up another environment', async () => {
      const [flooded, other] = await Promise.all([bench.start({ config: small }), bench.start()]);
      await flooded.execute('yes | head -c 20000000');
      const durations: number[] = [];
      let running = true;
      const { result, growth } = await rssGrowth(async () => {
        const flood = flooded.execute('yes', { timeoutS: limits.yesS }).finally(() => {
          running = false;
        });
        while (running) {
          const began = performance.now();
          await other.execute('echo ok');
          durations.push(performance.now() - began);
        }
        return flood;
      });
      expect(result.timedOut).toBe(true);
      // How much a machine writes in this time depends on what else it does; the next tests say the amount.
      expect(result.totalBytes).toBeGreaterThan(limits.keptBytes);
      expect(result.raw.length).toBe(limits.keptBytes);
      expect(growth).toBeLessThan(limits.rss);
      expect(durations.length).toBeGreaterThan(1);
      if (limits.othersMs !== null) expect(Math.max(...durations)).toBeLessThan(limits.othersMs);
    });

    test(`${limits.zerosMB} MB of zeros are counted, not kept`, async () => {
      const env = await bench.start({ config: { ...small, timeout: 100 } });
      const { result, growth } = await rssGrowth(() =>
        env.execute(`head -c ${limits.zerosMB}M /dev/zero; echo; echo end`),
      );
      expect(result.exitCode).toBe(0);
      expect(result.totalBytes).toBe(limits.zerosMB * MB + 5);
      expect(result.output.endsWith('end\n')).toBe(true);
      expect(growth).toBeLessThan(limits.rss);
    });

    test('one line of 50 MB', async () => {
      const env = await bench.start({ config: small });
      const { result, growth } = await rssGrowth(() =>
        env.execute(`head -c 50000000 /dev/zero | tr '\\0' x`),
      );
      expect([result.totalBytes, result.omittedBytes]).toEqual([50_000_000, 50_000_000 - limits.keptBytes]);
      expect(growth).toBeLessThan(limits.rss);
    });
  });
}
