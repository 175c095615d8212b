// The completion scripts, asked as the shells ask them.
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { completionScript } from '../../../src/cli/verbs/completion.ts';
import { allVerbs } from '../../../src/cli/verbs.ts';

const verbs = await allVerbs();

/** What bash offers for a line whose last word is being typed. */
function offered(...words: string[]): string[] {
  const script = `${completionScript('bash', verbs)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _swebatch; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const done = spawnSync('bash', ['-c', script, 'bash', 'swebatch', ...words], { encoding: 'utf8' });
  expect(done.stderr).toBe('');
  return done.stdout.split('\n').filter(Boolean);
}

test('bash offers verbs, options, choices and second words', () => {
  expect(offered('co')).toEqual(['compare', 'config', 'completion']);
  expect(offered('ls', '--wa')).toEqual(['--watch']);
  expect(offered('run', '--pull', '')).toEqual(['never', 'missing', 'always']);
  expect(offered('baseline', 's')).toEqual(['set', 'show']);
  expect(offered('ctl', 'night', 'st')).toEqual(['stop']);
  expect(offered('ctl', 'night', 'stop', '--n')).toEqual(['--now']);
  expect(offered('config', '')).toEqual(['show']);
  expect(offered('help', 'dat')).toEqual(['datasets']);
  expect(offered('ctl', 'night', 'pa')).toEqual(['pause']);
  expect(offered('report', '--co')).toContain('--color');
  expect(offered('report', '--env')).toEqual(['--env-file']);
});

test('every option of every verb is offered', () => {
  for (const { name, flags } of verbs)
    for (const [flag, { place }] of Object.entries(flags)) {
      const option = `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      if (!place) expect(offered(...name.split(' '), option)).toContain(option);
    }
});

test('zsh loads the functions of bash first; fish gets a line for every option', () => {
  expect(completionScript('zsh', verbs)).toMatch(/^autoload -U \+X bashcompinit && bashcompinit\n/);
  // A zsh without a configuration of its own lacks compdef, which bashcompinit calls.
  expect(completionScript('zsh', verbs)).toContain('(( $+functions[compdef] )) || {');
  const fish = completionScript('fish', [
    {
      name: 'run',
      describe: "it's one",
      flags: { pull: { choices: ['never', 'always'], describe: 'when' } },
    },
  ]);
  expect(fish).toContain(`complete -c swebatch -n __fish_use_subcommand -f -a run -d 'it\\'s one'`);
  expect(fish).toContain(
    `complete -c swebatch -n '__fish_seen_subcommand_from run' -l pull -r -f -a 'never always' -d 'when'`,
  );
});
