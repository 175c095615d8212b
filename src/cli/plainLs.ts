/**
 * `swebatch ls` in its plain forms, read without yargs: it is asked beside a run that fills every core, and yargs takes longer to load
 * than the answer. Whatever is not plain, mistakes among it, is yargs' to read.
 */
import { parseArgs } from 'node:util';

/** What yargs would hand to the verb, or null. */
export function plainLs(args: readonly string[]): Record<string, unknown> | null {
  if (args[0] !== 'ls') return null;
  try {
    const { values, positionals } = parseArgs({
      args: args.slice(1),
      options: { output: { type: 'string', short: 'o', multiple: true }, json: { type: 'boolean' } },
      allowPositionals: true,
    });
    const [root = 'results', ...more] = values.output ?? [];
    if (positionals.length > 1 || root === '' || more.length > 0) return null;
    return {
      ...(positionals[0] !== undefined && { run: positionals[0] }),
      output: root,
      json: values.json ?? false,
      watch: false,
    };
  } catch {
    return null;
  }
}
