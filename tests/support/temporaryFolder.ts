// All temporary folders of a test run lie in one that is gone afterwards: nothing is left in the machine's, and nothing there is in the way.
import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IN_MEMORY = '/dev/shm';
/** Tests keep 2 GB at a time. */
const ROOM = 8 * 2 ** 30;

/** In memory, where there is plenty of it and programs may be started there: tests sync what they write some 60,000 times. */
function place(): string {
  if (process.env.TMPDIR || process.availableMemory() < ROOM) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    const mounted = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '));
    const [, , , options = 'noexec'] = mounted.findLast(([, path]) => path === IN_MEMORY) ?? [];
    return bavail * bsize >= ROOM && !options.split(',').includes('noexec') ? IN_MEMORY : tmpdir();
  } catch {
    return tmpdir(); // another system
  }
}

/** Run by Vitest before its workers start; they and the programs they start inherit TMPDIR. */
export default function setUp(): (() => void) | undefined {
  // Each project asks for it.
  if (process.env.TESTS_TMPDIR) return undefined;
  const folder = mkdtempSync(join(place(), 'swebatch-tests-'));
  process.env.TMPDIR = folder;
  process.env.TESTS_TMPDIR = folder;
  return () => {
    delete process.env.TESTS_TMPDIR;
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    } catch (error) {
      // A disk that a killed test left mounted, say: no reason to call the tests failed.
      process.stderr.write(`${folder} is left over: ${(error as Error).message}\n`);
    }
  };
}
