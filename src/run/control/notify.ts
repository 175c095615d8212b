/**
 * Runs the commands that a user configured for the end of a run, for 50, 80 and 100 % of the budget and for the breaker. The event
 * is JSON on stdin, never part of the command line. A failing command is reported and changes nothing.
 */

import { spawn } from 'node:child_process';
import { within } from '../../base/async/timer.ts';
import type { RunConfig } from '../../config/configSchema.ts';
import type { Tell } from '../caller.ts';
import type { RunEvent } from '../events.ts';

/** Warnings for callers without a display. */
export const warningTo =
  (tell: Tell) =>
  (text: string): void =>
    tell({ level: 'warning', text: text.replace(/^warning: /, '') });

const COMMAND_OF: Partial<Record<RunEvent['type'], 'on_finish' | 'on_budget' | 'on_breaker'>> = {
  run_ended: 'on_finish',
  gate: 'on_finish',
  budget: 'on_budget',
  breaker: 'on_breaker',
};

export function createNotifier(config: RunConfig, say: (text: string) => void) {
  const running = new Set<Promise<void>>();
  return {
    listener: (event: RunEvent): void => {
      const name = COMMAND_OF[event.type];
      const command = name && config[name];
      if (!command) return;
      const done = runCommand(command, JSON.stringify(event)).then((problem) => {
        if (problem) say(`warning: run.${name} failed: ${problem}`);
      });
      running.add(done);
      void done.finally(() => running.delete(done));
    },
    /** Waits for commands that still run, at most the limit. */
    async settle(limitMs = 10_000): Promise<void> {
      await within(Promise.all(running), limitMs);
    },
  };
}

function runCommand(command: string, input: string): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, { shell: true, stdio: ['pipe', 'ignore', 'ignore'] });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code === 0 ? null : `it ended with ${code ?? signal}`));
    // A command may end without reading its input (notify.test.ts).
    child.stdin.on('error', () => {});
    child.stdin.end(`${input}\n`);
  });
}
