/** The flags of every verb: `swebatch --color=never ls --env-file night.env`. */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { errorText } from '../../base/text/errorText.ts';
import { UserError } from '../../run/userError.ts';
import { flags, string } from './verb.ts';

export const everyVerb = flags({
  color: {
    type: 'boolean',
    choices: ['auto', 'always', 'never'],
    describe:
      'colours: always, never (or --no-color), or auto: where a terminal has them; NO_COLOR and FORCE_COLOR are read too',
  },
  envFile: {
    ...string('file with NAME=value lines, read where the environment has no such variable; default: .env'),
    repeats: true,
  },
  help: { type: 'boolean', alias: 'h', describe: 'show help' },
  version: { type: 'boolean', alias: 'V', describe: 'show the version' },
});

/** Fills variables that `env` does not have. Throws a UserError for a named file that cannot be read. */
export function readEnvFiles(paths: readonly string[], env: NodeJS.ProcessEnv): void {
  const texts = paths.map(envFile);
  if (texts.length === 0) {
    // Nobody named this file: a folder or a file of someone else in its place is not a mistake.
    try {
      texts.push(readFileSync('.env', 'utf8'));
    } catch {}
  }
  // The later file wins over the earlier one, as with Node.
  const found = Object.assign({}, ...texts.map((text) => parseEnv(text))) as Record<string, string>;
  for (const [name, value] of Object.entries(found)) env[name] ??= value;
}

function envFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UserError(`--env-file ${path || '(nothing)'}: ${errorText(error)}`);
  }
}

/** `--color` is always, `--no-color` never. */
export function setColor(when: boolean | string | undefined, env: NodeJS.ProcessEnv): void {
  if (when === undefined || when === 'auto') return;
  const always = when === true || when === 'always';
  delete env[always ? 'NO_COLOR' : 'FORCE_COLOR'];
  env[always ? 'FORCE_COLOR' : 'NO_COLOR'] = '1';
}
