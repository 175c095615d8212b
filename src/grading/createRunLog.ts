/** Collects the lines of run_instance.log while an instance is graded. */
import type { RunLogLine } from '../formats/harness/logFolders.ts';

export interface RunLog {
  readonly lines: readonly RunLogLine[];
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export function createRunLog(now: () => Date): RunLog {
  const lines: RunLogLine[] = [];
  const add = (level: RunLogLine['level']) => (message: string) =>
    void lines.push({ at: now(), level, message });
  return { lines, info: add('INFO'), warn: add('WARNING'), error: add('ERROR') };
}
