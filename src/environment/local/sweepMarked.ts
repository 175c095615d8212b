/** Kills processes of this machine by the mark in their environment. */
import { readdirSync, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { thisMachine } from '../owner.ts';

/** Processes looked at in one turn of the event loop: reads of /proc take microseconds, some machines have thousands of processes. */
const TURN = 200;
const MAX_PASSES = 20;

/** Clock ticks since boot, with room for rounding; /proc counts 100 a second. */
export const ticksNow = () => Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 100 - 5;

/** Kills the group and whatever carries the mark: `setsid` children leave the group but keep the environment. */
export async function sweepMarked(mark: string, since: number, group?: number): Promise<void> {
  if (group !== undefined) kill(-group);
  const wanted = `SWEBATCH_CMD=${mark}`;
  for (let pass = 0, found = true; found && pass < MAX_PASSES; pass += 1) {
    found = false;
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    for (const [at, pid] of pids.entries()) {
      if (at % TURN === TURN - 1) await setImmediate();
      // The start time is cheaper to read than the environment, and rules out nearly everything.
      if (Number(thisMachine().startTimeOf(Number(pid)) ?? 0) < since || !carries(pid, wanted)) continue;
      if (kill(Number(pid))) found = true;
    }
  }
}

/** False when it has ended already. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

function carries(pid: string, wanted: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
      .split('\0')
      .some((entry) => entry.startsWith(wanted));
  } catch {
    // Gone, or somebody else's.
    return false;
  }
}
