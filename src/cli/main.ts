/** The way from a command line to the exit code of a verb. */

import { VERSION } from '../base/files/packageFile.ts';
import { closest } from '../base/text/closest.ts';
import { inert } from '../base/text/inert.ts';
import { stackOf } from '../base/text/sourceLines.ts';
import { blamed } from '../userModule.ts';
import { everyVerb, readEnvFiles, setColor } from './flags/everyVerb.ts';
import { parseWords } from './flags/parseWords.ts';
import { checkArgs } from './flags/verb.ts';
import { EXIT, explain, forTerminal, lostOutput, printData, printJson, say } from './terminal/context.ts';
import { loadVerb, RENAMED, VERBS } from './verbs.ts';

export async function main(words: readonly string[]): Promise<number> {
  const { name, rest } = verbIn(words);
  try {
    return await written(await answer(name, rest));
  } catch (error) {
    const json = words.includes('--json');
    if (!(error instanceof UsageError)) return written(fail(error, json));
    const message = inert(error.message);
    say(
      `error: ${message}\n  "${['swebatch', name ?? '', '--help'].filter(Boolean).join(' ')}" shows what there is`,
    );
    if (json) printJson({ error: { kind: 'usage', message } });
    return EXIT.usage;
  }
}

/** Without a verb a line asks for help or the version, or is a mistake. */
async function answer(name: string | undefined, words: readonly string[]): Promise<number> {
  if (name === undefined) refuseOtherVerbs(words);
  const verb = name === undefined ? undefined : await loadVerb(name);
  const { given, mistakes } = parseWords(words, {
    usage: verb?.usage ?? '<verb>',
    flags: { ...verb?.flags, ...everyVerb },
  });
  if (given.help) {
    // The layout of help takes as long to load as most verbs take to answer.
    const { helpOfVerb, helpOfVerbs } = await import('./help.ts');
    printData(await (verb ? helpOfVerb(verb) : helpOfVerbs()));
    return EXIT.done;
  }
  if (given.version) {
    printData(VERSION);
    return EXIT.done;
  }
  const { envFile, color } = checkArgs(everyVerb, given);
  readEnvFiles(envFile, process.env);
  setColor(color, process.env);
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'));
  if (!verb) throw new UsageError('name a verb; "swebatch run -c demo" is a first run');
  return verb.run(given);
}

/** `config show` is a verb of two words, `help run` and `-h run` are `run --help`, and options may stand before the verb. */
function verbIn(words: readonly string[]): { name?: string; rest: readonly string[] } {
  if (words[0] === 'help') {
    const { name, rest } = verbIn(words.slice(1));
    return { ...(name !== undefined && { name }), rest: [...rest, '--help'] };
  }
  const nameAt = (at: number) =>
    [`${words[at]} ${words[at + 1]}`, words[at]!].find((name) => VERBS.includes(name));
  const at = words[0]?.startsWith('-') ? words.findIndex((_, i) => nameAt(i) !== undefined) : 0;
  const name = at < 0 || words.length === 0 ? undefined : nameAt(at);
  if (name === undefined || renamedIn(words) !== undefined) return { rest: words };
  return { name, rest: [...words.slice(0, at), ...words.slice(at + name.split(' ').length)] };
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

/** Reports an error that nothing caught: without secrets, with the exit code of a defect (Node's own code means "gate failed" here). */
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

class UsageError extends Error {}

/** No verb of today takes one of the old words as its first argument. */
const renamedIn = ([first = '', second]: readonly string[]): string | undefined =>
  [first, `${first} ${second}`].find((words) => Object.hasOwn(RENAMED, words));

/** Says what a word that is no verb may mean. */
function refuseOtherVerbs(words: readonly string[]): void {
  const [word] = words;
  const old = renamedIn(words);
  if (old !== undefined)
    throw new UsageError(`there is no verb "${old}" any more; it is "swebatch ${RENAMED[old]}" now`);
  if (word === undefined || word.startsWith('-')) return;
  const close = nearestVerb(word);
  throw new UsageError(`there is no verb "${word}"${close ? `; did you mean "${close}"?` : ''}`);
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
