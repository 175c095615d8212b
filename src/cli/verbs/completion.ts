/** `swebatch completion SHELL`: a script for the shell, on stdout. */
import { completable, completionScript, SHELLS } from '../completionScript.ts';
import { flags } from '../flags/flags.ts';
import { defineVerb, type Verb } from '../flags/verb.ts';
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
      printExactly(completionScript(shell, (await allVerbs()).map(completable)));
      return EXIT.done;
    },
  });
