/** This process as the service's caller: its variables, its folder, its terminal. */
import type { Caller } from '../../service/caller.ts';
import { attendWith } from './attend.ts';
import { sayNotice } from './context.ts';
import { keepFromTerminal } from './forTerminal.ts';
import type { ProgressMode } from './progress.ts';

export const thisProcess = (progress: ProgressMode = 'auto'): Caller => ({
  env: process.env,
  cwd: process.cwd(),
  command: process.argv.slice(2),
  tell: sayNotice,
  keepSecret: keepFromTerminal,
  attend: attendWith(progress),
});
