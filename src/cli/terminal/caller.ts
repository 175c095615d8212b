/** This process as the service's caller: its variables, its folder, its terminal. */
import type { Caller } from '../../service/caller.ts';
import { sayNotice } from './context.ts';
import { keepFromTerminal } from './secrets.ts';

export const thisProcess = (): Caller => ({
  env: process.env,
  cwd: process.cwd(),
  command: process.argv.slice(2),
  tell: sayNotice,
  keepSecret: keepFromTerminal,
});
