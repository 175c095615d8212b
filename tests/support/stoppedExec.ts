// An exec process that a command stopped before it began: the engine then waits for it without an end, and only its death frees the container.
import { readdirSync, readFileSync } from 'node:fs';

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
};

/** Kills those of one container, on this machine: `runc init` that stands still, and whose parent is the `runc exec` that names the whole id. */
export function freeStoppedExecs(containerId: string): number {
  if (!/^[0-9a-f]{64}$/.test(containerId)) throw new Error(`not the id of a container: ${containerId}`);
  let freed = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (read(`/proc/${pid}/cmdline`) !== 'runc\0init\0') continue;
    const [state, parent] = read(`/proc/${pid}/stat`)
      .replace(/^.*\) /, '')
      .split(' ');
    const started = read(`/proc/${parent}/cmdline`).split('\0');
    if (state !== 'T' || !started.includes('exec') || !started.includes(containerId)) continue;
    process.kill(Number(pid), 'SIGKILL');
    freed += 1;
  }
  return freed;
}
