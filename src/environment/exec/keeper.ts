/** The first process of a container, which keeps it. keeperStart.sh and keeper.sh say what it does. */
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
