/**
 * Outputs of tests in SWE-bench-Live's archive of RepoLaunch. The archive has no log of its own: an output is here where the agent's log
 * shows what the command printed that prints the test log, often cut in its middle by the agent's terminal.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface LiveOutput {
  readonly id: string;
  readonly parser: string;
  /** Every output of the print command, in the order of the log. */
  readonly outputs: readonly string[];
  readonly published: Readonly<Record<string, string>>;
}

interface Result {
  readonly test_status?: Record<string, string> | null;
  readonly print_commands?: readonly string[] | null;
  readonly log_parser?: string | null;
}

function readResult(path: string): Result | undefined {
  try {
    // Python's json wrote NaN.
    return JSON.parse(readFileSync(path, 'utf8').replaceAll(/\bNaN\b/g, 'null')) as Result;
  } catch {
    return undefined;
  }
}

const COMMAND = /Action: <command>(.*?)<\/command>/gs;
const OBSERVATION = 'Observation:\n';
const END = /\n(?:exit code: -?\d+\n|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ - )/;

function outputsOf(log: string, printCommands: readonly string[]): string[] {
  const wanted = new Set([printCommands.join(' ; ').trim(), printCommands.at(-1)?.trim()]);
  return [...log.matchAll(COMMAND)].flatMap((found) => {
    const after = found.index + found[0].length;
    const at = log.indexOf(OBSERVATION, after);
    if (!wanted.has(found[1]!.trim()) || at < 0 || at - after > 600) return [];
    const rest = log.slice(at + OBSERVATION.length);
    return [rest.slice(0, END.exec(rest)?.index)];
  });
}

export function liveOutputs(archive: string): LiveOutput[] {
  return globSync(join(archive, '**/result.json'))
    .toSorted()
    .flatMap((path) => {
      const log = join(dirname(path), 'organize.log');
      const { test_status: published, print_commands: prints, log_parser: parser } = readResult(path) ?? {};
      if (!published || Object.keys(published).length === 0 || !parser || !existsSync(log)) return [];
      const outputs = outputsOf(readFileSync(log, 'utf8'), prints ?? []);
      return outputs.length === 0 ? [] : [{ id: dirname(path), parser, outputs, published }];
    });
}

/** What statuses of an output say beside the published ones. */
export function comparedTo(
  published: Readonly<Record<string, string>>,
  statuses: ReadonlyMap<string, string>,
): 'equal' | 'part' | 'differs' | 'none' {
  if (statuses.size === 0) return 'none';
  if (![...statuses].every(([name, status]) => published[name] === status)) return 'differs';
  return statuses.size === Object.keys(published).length ? 'equal' : 'part';
}
