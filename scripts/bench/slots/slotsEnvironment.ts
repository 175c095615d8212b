// Environments on a simulated engine of another machine: each command waits as the trial says, and each start too.
import { sleep } from '../../../src/base/async/timer.ts';
import { completeFactory, type PlainEnvironment } from '../../../src/environment/capabilities.ts';
import type { EnvironmentFactory } from '../../../src/environment/environment.ts';
import { simulatedTrial } from './simulated.ts';

const LINE = 'a line of a file, as commands of agents print it, sixty-four bytes\n';
const PATCH = Buffer.from(`diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+${'b'.repeat(2_000)}\n`);

export const createEnvironmentFactory = (): EnvironmentFactory =>
  completeFactory({
    kind: 'simulated',
    async start({ instanceId, signal }) {
      const trial = simulatedTrial(instanceId);
      await sleep(trial.startMs, signal);
      return simulated(trial);
    },
    close: async () => undefined,
  });

function simulated({ commands, outputBytes }: ReturnType<typeof simulatedTrial>): PlainEnvironment {
  let step = 0;
  return {
    info: { kind: 'simulated', transport: 'supervisor', history: 'skipped', notes: [] },
    async execute(command, options = {}) {
      const durationMs = commands[step] ?? 0;
      const bytes = outputBytes[step] ?? 0;
      step += 1;
      await sleep(durationMs, options.signal);
      const marker = command.startsWith('echo COMPLETE') ? `${command.slice(5)}\n` : '';
      const output = marker + LINE.repeat(Math.ceil(bytes / LINE.length));
      const facts = { timedOut: false, omittedBytes: 0, replacedBytes: 0, oomKilled: false };
      const raw = Buffer.from(output);
      return {
        ...{ ...facts, output, raw, exitCode: 0, totalBytes: raw.length, durationMs },
        ...{ transport: 'supervisor', exceptionInfo: '' },
      };
    },
    templateVars: () => ({ cwd: '/testbed', timeout: 60 }),
    capturePatch: async () => ({ patch: PATCH, state: 'ok', warnings: [] }),
    putFile: async () => undefined,
    getFile: async () => new Uint8Array(),
    close: async () => undefined,
  };
}
