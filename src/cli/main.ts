/** yargs: one file a verb. A verb's handler returns its exit code. */
import { closest } from '../base/text/closest.ts';
import { VERSION } from '../service/version.ts';
import { usageMessage } from './flags/usage.ts';
import { plainLs } from './plainLs.ts';
import { EXIT, explain, lostOutput, printJson, say } from './terminal/context.ts';
import { forTerminal } from './terminal/secrets.ts';
import { loadVerbs, VERBS } from './verbs.ts';

export async function main(args: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.done;
  const json = args.includes('--json');
  const fail = (error: unknown) => {
    const { exitCode: code, kind, ...said } = explain(error);
    const text = forTerminal(said.text);
    if (json) printJson({ error: { kind, message: text } });
    say(`error: ${text}`);
    exitCode = code;
  };
  const verbs = await loadVerbs(args[0]);
  const plain = plainLs(args);
  if (plain) {
    try {
      exitCode = await verbs[0]!.run(plain);
    } catch (error) {
      fail(error);
    }
    return written(exitCode);
  }
  const { default: yargs } = await import('yargs');
  const parser = yargs()
    .scriptName('swebatch')
    .usage('$0 <verb>\n\nA batch benchmark runner for SWE-bench-style datasets.')
    .version(VERSION)
    .strict()
    .demandCommand(1, 'name a verb')
    .help()
    .wrap(Math.min(100, process.stdout.columns ?? 100))
    .exitProcess(false)
    .epilogue(
      'Exit codes: 0 done, 1 gate failed, 2 usage or config, 3 incomplete, 4 budget reached, 5 storage, 130/143 interrupted.',
    )
    .fail((message, error) => {
      // yargs' own errors are the person's; any other one comes from a verb.
      throw error && error.name !== 'YError' ? error : new UsageError(message ?? error.message);
    });
  for (const verb of verbs)
    parser.command({
      command: verb.command,
      describe: verb.describe,
      builder: verb.builder,
      handler: async (argv) => {
        exitCode = await verb.run(argv);
      },
    });
  try {
    requireVerb(args[0]);
    await parser.parseAsync(joinStdin(args));
  } catch (error) {
    if (error instanceof UsageError) {
      const message = await usageMessage(error.message, args, verbs.length === 1 ? verbs[0] : undefined);
      say(`error: ${message}\n  "${usageOf(args[0])} --help" shows what there is`);
      if (json) printJson({ error: { kind: 'usage', message } });
      return EXIT.usage;
    }
    fail(error);
  }
  return written(exitCode);
}

/** What could not be written is no success. */
async function written(exitCode: number): Promise<number> {
  const unwritten = await lostOutput();
  if (unwritten) say(`error: the output could not be written: ${unwritten.message}`);
  return unwritten && exitCode === EXIT.done ? EXIT.storage : exitCode;
}

/** What nobody caught: told without secrets, and with the exit code of a defect (Node's own would read "gate failed"). */
export function crashed(error: unknown): never {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  say(`error: swebatch failed, please report it: ${stack}`);
  process.exit(EXIT.storage);
}

/** yargs takes a lone `-` after a list option for a positional: `-c -` becomes `-c=-`. */
const joinStdin = (args: readonly string[]): string[] =>
  args.flatMap((arg, i) => {
    const names = (flag: string | undefined) => flag === '-c' || flag === '--config';
    if (names(arg) && args[i + 1] === '-') return [`${arg}=-`];
    return arg === '-' && names(args[i - 1]) ? [] : [arg];
  });

class UsageError extends Error {}

const usageOf = (word: string | undefined): string =>
  word !== undefined && VERBS.includes(word) ? `swebatch ${word}` : 'swebatch';

/** yargs would list every flag behind an unknown verb as unknown too. */
function requireVerb(word: string | undefined): void {
  if (word === undefined || word.startsWith('-') || VERBS.includes(word)) return;
  const close = closest(word, VERBS);
  throw new UsageError(`there is no verb "${word}"${close ? `; did you mean "${close}"?` : ''}`);
}
