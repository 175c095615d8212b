import { everyVerb } from '../flags/everyVerb.ts';
import { defineVerb, type Flags, flags, isSwitch, kebab, type Verb } from '../flags/verb.ts';
import { EXIT, printExactly } from '../terminal/context.ts';

export const completionVerb = (allVerbs: () => Promise<Verb[]>): Verb =>
  defineVerb({
    name: 'completion',
    describe: 'a script that completes verbs, options and their choices in your shell',
    flags: flags({ shell: { choices: SHELLS, place: 'required' } }),
    examples: [
      ['source <($0 completion bash)', 'in ~/.bashrc; zsh: the same in ~/.zshrc'],
      ['$0 completion fish | source', 'in config.fish'],
    ],
    async run({ shell }) {
      printExactly(completionScript(shell, await allVerbs()));
      return EXIT.done;
    },
  });

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** The verb's name is one word, or two: `config show`. */
type Completable = Pick<Verb, 'name' | 'describe' | 'flags'>;

export const completionScript = (shell: (typeof SHELLS)[number], verbs: readonly Completable[]): string =>
  shell === 'fish' ? fish(verbs) : `${shell === 'zsh' ? ZSH : ''}${bash(verbs)}`;

/** A zsh without a configuration of its own has loaded neither. */
const ZSH = `autoload -U +X bashcompinit && bashcompinit
(( $+functions[compdef] )) || { autoload -U compinit && compinit -i }
`;

const optionsOf = ({ flags }: Completable) =>
  Object.entries<Flags[string]>({ ...flags, ...everyVerb }).flatMap(([name, flag]) => {
    const { place, describe = '', choices = [] } = flag;
    const takesValue = !isSwitch(flag);
    return place ? [] : [{ name: kebab(name), describe, choices: takesValue ? choices : [], takesValue }];
  });

/** Words that may stand behind a verb: `baseline set`, `ctl RUN pause`. */
const wordsOf = ({ flags }: Completable): readonly string[] =>
  Object.values(flags).flatMap(({ place, choices }) => (place ? (choices ?? []) : []));

const firstOf = (name: string): string => name.split(' ')[0]!;
const seconds = (verbs: readonly Completable[], first: string): string[] =>
  verbs.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));

function bash(verbs: readonly Completable[]): string {
  const firsts = [...new Set(verbs.map(({ name }) => firstOf(name)))];
  const choices = verbs.flatMap((verb) =>
    optionsOf(verb).flatMap(({ name, choices: all }) =>
      all.length > 0 ? [`    '${verb.name} --${name}') words='${all.join(' ')}' ;;`] : [],
    ),
  );
  const options = verbs.map(
    (verb) =>
      `    '${verb.name}') words='${[...wordsOf(verb), ...seconds(verbs, verb.name), ...optionsOf(verb).map(({ name }) => `--${name}`)].join(' ')}' ;;`,
  );
  const alone = firsts.filter((first) => verbs.every(({ name }) => name !== first));
  return `# bash completion for swebatch: source <(swebatch completion bash)
_swebatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" words=''
  local verb="\${COMP_WORDS[1]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${firsts.join(' ')} help --help --version' -- "$cur"))
    return
  fi
  case "$verb \${COMP_WORDS[2]}" in
${verbs.flatMap(({ name }) => (name.includes(' ') ? [`    '${name}') [ "$COMP_CWORD" -gt 2 ] && verb='${name}' ;;`] : [])).join('\n')}
  esac
  case "$verb $prev" in
${choices.join('\n')}
  esac
  [ -n "$words" ] || case "$verb" in
${[...options, ...alone.map((first) => `    '${first}') words='${seconds(verbs, first).join(' ')}' ;;`)].join('\n')}
    help) words='${firsts.join(' ')}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _swebatch swebatch
`;
}

function fish(verbs: readonly Completable[]): string {
  const said = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = ['# fish completion for swebatch: swebatch completion fish | source'];
  const seen = new Set<string>();
  for (const verb of verbs) {
    const [first = '', second] = verb.name.split(' ');
    const describe = verbs.find(({ name }) => name === first)?.describe ?? '';
    if (!seen.has(first))
      lines.push(`complete -c swebatch -n __fish_use_subcommand -f -a ${first} -d ${said(describe)}`);
    seen.add(first);
    if (second)
      lines.push(
        `complete -c swebatch -n '__fish_seen_subcommand_from ${first}' -f -a ${second} -d ${said(verb.describe)}`,
      );
    const when = `'__fish_seen_subcommand_from ${second ?? first}'`;
    for (const word of wordsOf(verb)) lines.push(`complete -c swebatch -n ${when} -f -a ${word}`);
    for (const { name, describe: says, choices, takesValue } of optionsOf(verb))
      lines.push(
        `complete -c swebatch -n ${when} -l ${name}${takesValue ? ' -r' : ''}${choices.length > 0 ? ` -f -a ${said(choices.join(' '))}` : ''} -d ${said(says)}`,
      );
  }
  return `${lines.join('\n')}\n`;
}
