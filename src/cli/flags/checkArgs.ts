/** Checks arguments with a zod schema made from the table of flags: yargs lets NaN, repeats and missing values through. */
import type { z } from 'zod';
import { issueText } from '../../base/text/errorText.ts';
import { UserError } from '../../run/userError.ts';
import { type Args, alwaysThere, type Flag, type Flags, kebab } from './flags.ts';

type Argv = Readonly<Record<string, unknown>>;

/** Throws UserError with every problem. */
export async function checkArgs<T extends Flags>(flags: T, argv: Argv): Promise<Args<T>> {
  if (isPlain(flags, argv)) return pick(flags, argv) as Args<T>;
  const parsed = (await schemaOf(flags)).safeParse(argv);
  if (parsed.success) return parsed.data as Args<T>;
  const problems = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    const repeated = issue.code === 'invalid_type' && issue.path.length === 1 && Array.isArray(argv[name]);
    const typed = flags[name]?.place ? `<${name}>` : `--${kebab(name)}`;
    return `${typed}: ${repeated ? 'given more than once' : issueText(issue)}`;
  });
  throw new UserError(problems.join('\n'));
}

async function schemaOf(flags: Flags): Promise<z.ZodObject> {
  const { z } = await import('zod');
  const schema = (flag: Flag): z.ZodType => {
    if (flag.check) return flag.check;
    const one = flag.choices ? z.enum(flag.choices) : z[flag.type ?? 'string']();
    const value = flag.list ? z.array(one) : one;
    return alwaysThere(flag) ? value : value.optional();
  };
  return z.object(Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, schema(flag)])));
}

/** Loading zod takes as long as `ls` takes to answer: it is not needed where every value has the plain type that the table says. */
const isPlain = (flags: Flags, argv: Argv): boolean =>
  Object.entries(flags).every(([name, { type, check, choices, list }]) => {
    if (check) return false;
    const value = argv[name];
    return value === undefined || (type !== 'number' && !choices && !list && typeof value === type);
  });

const pick = (flags: Flags, argv: Argv): Argv =>
  Object.fromEntries(Object.keys(flags).flatMap((name) => (name in argv ? [[name, argv[name]]] : [])));
