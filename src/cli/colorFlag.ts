/** `--color`, for every verb: it sets the variables that decide about colours everywhere. */
import { UserError } from '../run/userError.ts';

export const COLOR = 'color';
export const COLOR_SAYS =
  'colours: always, never (or --no-color), or auto: where a terminal has them; NO_COLOR and FORCE_COLOR are read too';

const SET: Readonly<Record<string, Record<string, string | undefined> | undefined>> = {
  auto: {},
  always: { FORCE_COLOR: '1', NO_COLOR: undefined },
  never: { FORCE_COLOR: undefined, NO_COLOR: '1' },
};

const FLAG = /^--(no-)?color(?:=(.*))?$/;

/** Returns the arguments without it. */
export function withColor(args: readonly string[], env: NodeJS.ProcessEnv = process.env): string[] {
  const end = args.indexOf('--');
  const rest: string[] = [];
  for (const [i, arg] of args.entries()) {
    const found = end === -1 || i < end ? FLAG.exec(arg) : null;
    if (!found) {
      rest.push(arg);
      continue;
    }
    const when = found[1] ? 'never' : (found[2] ?? 'always');
    const set = SET[when];
    if (!set) throw new UserError(`--color=${when} must be one of ${Object.keys(SET).join(', ')}`);
    for (const [name, value] of Object.entries(set))
      if (value === undefined) delete env[name];
      else env[name] = value;
  }
  return rest;
}
