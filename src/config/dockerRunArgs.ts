/** Maps `environment.run_args` of mini-swe-agent, arguments of `docker run`, to keys of this program, or says why there is no key. */
import { merge, type Tree } from './merge.ts';

type Target = { readonly set: (value: string) => Tree } | { readonly note: string } | 'always';

const environment = (key: string, convert: (value: string) => unknown = (v) => v) => ({
  set: (value: string): Tree => ({ environment: { [key]: convert(value) } }),
});
const assignment = {
  set: (value: string): Tree => {
    const [name = '', ...rest] = value.split('=');
    return { environment: { env: { [name]: rest.join('=') } } };
  },
};

/** Flags without a value. */
const SWITCHES: Readonly<Record<string, Target>> = {
  '--rm': 'always',
  '--init': 'always',
  '-d': 'always',
  '--detach': 'always',
};
const OPTIONS: Readonly<Record<string, Target>> = {
  '--network': environment('network'),
  '--net': environment('network'),
  '--memory': environment('memory'),
  '-m': environment('memory'),
  '--cap-drop': { note: "capabilities are the engine's default set" },
  '--memory-swap': { note: 'swap is always the memory limit' },
  '--cpus': environment('cpus', Number),
  '--pids-limit': environment('pids_limit', Number),
  '--user': environment('user'),
  '-u': environment('user'),
  '--platform': environment('platform'),
  '--pull': environment('pull'),
  '--workdir': environment('cwd'),
  '-w': environment('cwd'),
  '--env': assignment,
  '-e': assignment,
};

export function mapRunArgs(
  value: unknown,
): { readonly set: Tree; readonly warning?: string } | { readonly problem: string } {
  if (!Array.isArray(value) || value.some((arg) => typeof arg !== 'string'))
    return { problem: 'expected a list of arguments' };
  const args = value as string[];
  let set: Tree = {};
  const notes: string[] = [];
  const refused: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    if (SWITCHES[arg]) continue;
    const [flag, inline] = arg.startsWith('--') && arg.includes('=') ? splitFlag(arg) : [arg, undefined];
    const target = OPTIONS[flag];
    const given = inline ?? args[i + 1];
    if (!target || target === 'always' || given === undefined) {
      refused.push(arg);
      if (inline === undefined && given !== undefined && !given.startsWith('-')) i += 1;
      continue;
    }
    if (inline === undefined) i += 1;
    if ('note' in target) notes.push(`${flag}: ${target.note}`);
    else set = merge(set, target.set(given));
  }
  if (refused.length > 0)
    return {
      problem: `${refused.join(', ')} cannot be passed to the engine; there are keys for network, memory, cpus, pids_limit, user, platform, env and cwd`,
    };
  return notes.length > 0 ? { set, warning: notes.join('; ') } : { set };
}

const splitFlag = (arg: string): [string, string] => {
  const at = arg.indexOf('=');
  return [arg.slice(0, at), arg.slice(at + 1)];
};
