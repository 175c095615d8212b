/** `swebatch --help` and `swebatch run --help`: yargs lays out the tables of flags. */
import type { Argv } from 'yargs';
import { VERSION } from '../base/files/packageFile.ts';
import { everyVerb } from './flags/everyVerb.ts';
import { type Flag, isSwitch, kebab, type Verb } from './flags/verb.ts';
import { FURTHER_VERBS, type ListedVerb, listVerbs } from './verbs.ts';

export const helpOfVerbs = async (): Promise<string> =>
  helpOf(await listVerbs(), [], `more: ${FURTHER_VERBS.join(', ')}\n\n`);

/** yargs knows verbs of one word: `config show` is `config-show` there. */
export async function helpOfVerb(verb: Verb): Promise<string> {
  const word = verb.name.replaceAll(' ', '-');
  const usage = verb.usage.replace(verb.name, word);
  const help = await helpOf([{ ...verb, usage }], [word], '');
  return help.replaceAll(`swebatch ${word}`, `swebatch ${verb.name}`);
}

async function helpOf(
  verbs: readonly (ListedVerb & Partial<Verb>)[],
  words: readonly string[],
  more: string,
): Promise<string> {
  const { default: yargs } = await import('yargs');
  const parser = yargs()
    .scriptName('swebatch')
    .usage('$0 <verb>\n\nA batch benchmark runner for SWE-bench-style datasets.')
    .version(VERSION)
    .alias('version', 'V')
    .help()
    .alias('help', 'h')
    .option('env-file', optionOf(everyVerb.envFile))
    .option('color', optionOf(everyVerb.color))
    .wrap(Math.min(100, process.stdout.columns || 100))
    .exitProcess(false)
    .epilogue(
      `${more}Exit codes: 0 done, 1 a gate or check failed, 2 usage or config, 3 incomplete, 4 budget reached, 5 storage or internal error, 130/143 interrupted.`,
    );
  for (const { usage, describe, flags = {}, examples = [] } of verbs)
    parser.command({
      command: usage,
      describe,
      builder(options: Argv) {
        for (const [name, flag] of Object.entries(flags))
          if (flag.place)
            options.positional(name, { ...optionOf(flag), demandOption: flag.place === 'required' });
          else options.option(kebab(name), optionOf(flag));
        for (const [command, says] of examples) options.example(command, says);
        return options;
      },
      handler: () => {},
    });
  let help = '';
  await parser.parseAsync([...words, '--help'], {}, (_, __, output) => {
    help = output;
  });
  return help;
}

/** The part of a flag that yargs lays out. */
const optionOf = (flag: Flag): object => {
  const { alias, choices, default: unless, describe, group, list, type } = flag;
  return {
    ...(alias !== undefined && { alias }),
    ...(unless !== undefined && { default: unless }),
    ...(describe !== undefined && { describe }),
    ...(group !== undefined && { group }),
    ...(list && { array: true }),
    ...(isSwitch(flag) && choices
      ? { type: 'string' }
      : { ...(type && { type }), ...(choices && { choices }) }),
  };
};
