// Commands that kill whatever they can: their result is what bash gives, and the environment lives on.
import { describe, expect, test } from 'vitest';
import type { Bench } from './bench.ts';

/** As pkill and killall do it, which many images lack. The one who kills spares itself. */
const killBy = (signal: number, name: string) =>
  `python3 -c "
import glob, os
for path in glob.glob('/proc/[0-9]*/comm'):
    pid = int(path.split('/')[2])
    try:
        if open(path).read().strip() == '${name}' and pid != os.getpid(): os.kill(pid, ${signal})
    except OSError: pass
"`;

export function killSuite(bench: Bench): void {
  describe.skipIf(!bench.can.container)('a command that kills whatever it can [T-61]', () => {
    test('has the result that bash gives, and the next one runs', async () => {
      const env = await bench.start();
      const supervised = env.info.transport === 'supervisor';
      const cases: [command: string, code: number, output: string][] = [
        ['kill -9 -1; echo on; exit 7', 7, 'on\n'],
        ['kill -9 -1; sleep 4; exit 7', 7, ''],
        ['exec 2>/dev/null; sleep 1000 & kill -9 -1; sleep 0.2; exit 7', 7, ''],
        [`exec 2>/dev/null; sleep 1000 & ${killBy(15, 'sleep')}; echo on; exit 7`, 7, 'on\n'],
        [`${killBy(9, 'bash')}; echo not`, 137, ''],
        [`${killBy(15, 'bash')}; echo not`, 143, ''],
        [`${killBy(9, 'sh')}; echo on; exit 7`, 7, 'on\n'],
        ['kill -9 1; kill -TERM 1; kill -STOP 1; kill -USR2 1; kill -TERM -1; echo on; exit 7', 7, 'on\n'],
        // It ends in the moment in which the first process would handle the signal.
        ...Array.from({ length: 5 }, (): [string, number, string] => ['kill -USR2 1; exit 7', 7, '']),
        ['for s in {1..64}; do kill -$s 1 2>/dev/null; done; exit 7', 7, ''],
      ];
      for (const [index, [command, code, output]] of cases.entries()) {
        const result = await env.execute(command, { timeoutS: 60 });
        if (supervised) expect([command, result.exitCode, result.output]).toEqual([command, code, output]);
        else if (result.exitCode !== code) expect(result.exceptionInfo, command).toContain('not known');
        expect(await env.execute(`echo next ${index}; exit 3`)).toMatchObject({
          exitCode: 3,
          output: `next ${index}\n`,
          exceptionInfo: '',
        });
      }
      await env.execute('echo work >> README.md');
      expect(Buffer.from((await env.capturePatch()).patch).toString()).toContain('+work');
    });

    test('orphans are reaped, and the list of processes is short', async () => {
      const env = await bench.start();
      // A busy machine takes its time: what is never reaped is still there at the end.
      const zombies = `(sleep 0.1 &); (setsid sleep 0.1 &); for try in {1..20}; do sleep 1; left=$(grep -l '^State:.Z' /proc/[0-9]*/status | wc -l); [ $left = 0 ] && break; done; echo $left`;
      expect((await env.execute(zombies, { timeoutS: 60 })).output).toBe('0\n');
      if (env.info.transport !== 'supervisor') return;
      const { output } = await env.execute('cat /proc/[0-9]*/cmdline | wc -c');
      expect(Number(output)).toBeLessThan(1500);
    });
  });
}
