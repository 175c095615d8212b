/** The first process of a container, which keeps it. What it does is said in keeperStart.sh and keeper.sh. */
import { shellScript } from '../shellScript.ts';

const START = shellScript('inside/keeperStart.sh', import.meta.url);
const LOADER = shellScript('inside/keeperLoad.sh', import.meta.url);

/** `lifetimeS`: 0 for none. `supervised`: it is to run commands. `names`: /etc/hosts and /etc/resolv.conf, where no engine makes them. */
export const keeperEntrypoint = (
  lifetimeS: number,
  supervised: boolean,
  names?: readonly [hosts: string, resolver: string],
): string[] => [
  'sh',
  '-c',
  START,
  'swebatch-keeper',
  String(Math.ceil(lifetimeS)),
  supervised ? LOADER : '',
  ...(names ?? []),
];
