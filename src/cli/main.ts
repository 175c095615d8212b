/** From a command line to the exit code of a verb. */

import { VERSION } from '../base/files/packageFile.ts';
import { closest } from '../base/text/closest.ts';
import { inert, visibleName } from '../base/text/inert.ts';
import { stackOf } from '../base/text/sourceLines.ts';
import { blamed } from '../userModule.ts';
import {
  COLOR,
  COLOR_SAYS,
  ENV_FILE,
  ENV_FILE_SAYS,
  usageMessage,
  valueOfSwitch,
  withColor,
  withEnvFile,
} from './flags/commandLine.ts';
import type { Verb } from './flags/verb.ts';
import { EXIT, explain, forTerminal, lostOutput, printData, printJson, say } from './terminal/context.ts';
import { FURTHER_VERBS, type ListedVerb, listVerbs, loadVerbs, RENAMED, VERBS } from './verbs.ts';

export async function main(given: readonly string[]): Promise<number> {
  const json = given.includes('--json');
  let args = given;
  let verb: Verb | undefined;
  try {
    args = verbFirst(withColor(withEnvFile(given)));
    refuseRenamed(args);
    // Without the modules of every verb, which yargs would be given first.
    if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
      printData(VERSION);
      return await written(EXIT.done);
    }
    if (!args.some((arg) => VERBS.includes(arg)))
      return await written(await byYargs(await listVerbs(), args));
    const verbs = await loadVerbs(args[0]);
    verb = verbs.length === 1 ? verbs[0] : undefined;
    return await written(await byYargs(verbs, args, verb));
  } catch (error) {
    if (!(error instanceof UsageError)) return written(fail(error, json));
    const message = inert(usageMessage(error.message, args, verb));
    say(`error: ${message}\n  "${usageOf(args[0])} --help" shows what there is`);
    if (json) printJson({ error: { kind: 'usage', message } });
    return EXIT.usage;
  }
}

/** Verbs that are only listed are never run. `named`: the one that the line names. */
async function byYargs(
  verbs: readonly (ListedVerb & Partial<Verb>)[],
  args: readonly string[],
  named?: Verb,
): Promise<number> {
  const { default: yargs } = await import('yargs');
  let exitCode: number = EXIT.done;
  const parser = yargs()
    .scriptName('swebatch')
    .usage('$0 <verb>\n\nA batch benchmark runner for SWE-bench-style datasets.')
    .version(VERSION)
    .alias('version', 'V')
    .strict()
    .demandCommand(1, 'name a verb; "swebatch run -c demo" is a first run')
    .help()
    .alias('help', 'h')
    .option(ENV_FILE, { type: 'string', requiresArg: true, describe: ENV_FILE_SAYS })
    .option(COLOR, { type: 'string', describe: COLOR_SAYS })
    .wrap(Math.min(100, process.stdout.columns || 100))
    .exitProcess(false)
    .epilogue(
      `${verbs.length > 1 ? `more: ${FURTHER_VERBS.join(', ')}\n\n` : ''}Exit codes: 0 done, 1 a gate or check failed, 2 usage or config, 3 incomplete, 4 budget reached, 5 storage or internal error, 130/143 interrupted.`,
    )
    .fail((message, error) => {
      // yargs' own errors are the person's; any other one comes from a verb.
      throw error && error.name !== 'YError' ? error : new UsageError(message ?? error.message);
    });
  for (const verb of verbs)
    parser.command({
      command: oneWord(verb.command),
      describe: verb.describe,
      ...(verb.builder && { builder: verb.builder }),
      handler: async (argv) => {
        if (verb.run) exitCode = await verb.run(argv);
      },
    });
  requireVerb(args);
  const wrong = valueOfSwitch(args, named);
  if (wrong) throw new UsageError(wrong);
  const [word = '', ...rest] = args;
  // What yargs itself prints is help and the version.
  await parser.parseAsync(
    joinStdin(args.length === 0 ? [] : [oneWord(word), ...rest]),
    {},
    (_, __, output) => {
      if (output) printData(asTyped(output));
    },
  );
  return exitCode;
}

/** yargs knows verbs of one word: `config show` is `config-show` there. */
const OF_TWO_WORDS = VERBS.filter((verb) => verb.includes(' ')).map(
  (verb) => [verb, verb.replace(' ', '-')] as const,
);

const oneWord = (command: string): string => {
  const found = OF_TWO_WORDS.find(([verb]) => command === verb || command.startsWith(`${verb} `));
  return found ? command.replace(...found) : command;
};

const asTyped = (help: string): string =>
  OF_TWO_WORDS.reduce((text, [verb, word]) => text.replaceAll(`swebatch ${word}`, `swebatch ${verb}`), help);

/** The verb as the first argument: `config show` has one of two words, and `help run` and `-h run` ask `run` for its help. */
function verbFirst(args: readonly string[]): readonly string[] {
  const [first, second, ...rest] = args;
  if (first === 'help' || ((first === '-h' || first === '--help') && second !== undefined))
    return [...verbFirst(args.slice(1)), '--help'];
  const both = `${first} ${second}`;
  return VERBS.includes(both) ? [both, ...rest] : args;
}

function fail(error: unknown, json: boolean): number {
  const { exitCode, kind, ...said } = explain(error);
  const text = forTerminal(inert(said.text));
  if (json) printJson({ error: { kind, message: text } });
  say(`error: ${text}`);
  return exitCode;
}

/** Output that could not be written is not a success. */
async function written(exitCode: number): Promise<number> {
  const unwritten = await lostOutput();
  if (unwritten) say(`error: the output could not be written: ${unwritten.message}`);
  return unwritten && exitCode === EXIT.done ? EXIT.storage : exitCode;
}

/** For errors that nothing caught: reported without secrets, with the exit code of a defect (Node's own code means "gate failed" here). */
export function crashed(error: unknown): never {
  const module = blamed(error);
  if (module) {
    say(inert(`error: ${module.message}, where nobody waited for it`));
    process.exit(EXIT.usage);
  }
  const stack = stackOf(error) ?? String(error);
  say(inert(`error: swebatch failed, please report it: ${stack}`));
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

/** Says what an old word is called now. No verb of today takes one of them as its first argument. */
function refuseRenamed([first = '', second]: readonly string[]): void {
  const old = [first, `${first} ${second}`].find((words) => Object.hasOwn(RENAMED, words));
  if (old === undefined) return;
  throw new UsageError(`there is no verb "${old}" any more; it is "swebatch ${RENAMED[old]}" now`);
}

/** yargs would list every flag behind an unknown verb as unknown too, and no option without a verb. */
function requireVerb(args: readonly string[]): void {
  const [word] = args;
  if (word === undefined || VERBS.includes(word)) return;
  if (!word.startsWith('-')) {
    const close = nearestVerb(word);
    throw new UsageError(`there is no verb "${word}"${close ? `; did you mean "${close}"?` : ''}`);
  }
  const name = /^--([^=]+)/.exec(word)?.[1];
  if (name === undefined || WITHOUT_VERB.includes(name) || args.some((arg) => VERBS.includes(arg))) return;
  const close = closest(name, WITHOUT_VERB);
  throw new UsageError(
    `there is no option --${visibleName(name)}${close ? `; did you mean --${close}?` : ''}`,
  );
}

/** Words of other tools for what a verb does. */
const SYNONYMS: Readonly<Record<string, string>> = {
  start: 'run',
  continue: 'resume',
  stop: 'ctl',
  kill: 'ctl',
  cancel: 'ctl',
  pause: 'ctl',
  watch: 'ctl',
  status: 'ls',
  list: 'ls',
  grade: 'evaluate',
  score: 'report',
  summary: 'report',
  diff: 'compare',
  gate: 'compare',
  serve: 'view',
  viewer: 'view',
  rm: 'delete',
  prune: 'clean',
  gc: 'clean',
  log: 'show',
  logs: 'show',
  tail: 'show',
  cost: 'report',
  remove: 'delete',
  check: 'doctor',
  stats: 'report',
};

const nearestVerb = (word: string): string | null =>
  VERBS.find((verb) => verb.startsWith(`${word} `)) ??
  (word.length > 2 ? VERBS.find((verb) => verb.startsWith(word)) : undefined) ??
  (Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word]! : closest(word, VERBS));

const WITHOUT_VERB: readonly string[] = ['help', 'version', ENV_FILE, COLOR, 'no-color'];
