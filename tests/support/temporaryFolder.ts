// All temporary folders of a test run lie in one that is gone afterwards: nothing is left in the machine's, and nothing there is in the way.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Run by Vitest before its workers start; they and the programs they start inherit TMPDIR. */
export default function setUp(): (() => void) | undefined {
  // Each project asks for it.
  if (process.env.TESTS_TMPDIR) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'swebatch-tests-'));
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
