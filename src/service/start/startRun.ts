/** `startRun` and `resumeRun`: a run from a program. */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { openStore } from '../../store/open.ts';
import { preflight } from '../plan/preflight.ts';
import { databasePath } from '../resultsRoot.ts';
import { type Running, type Surroundings, startWork } from '../running.ts';
import { beginRun } from './beginRun.ts';
import type { RunOutcome } from './executeRun.ts';
import { goOnWithRun, type ResumeOptions } from './goOnWithRun.ts';
import { prepareRun } from './prepareRun.ts';
import type { RunOptions } from './runOptions.ts';

/** Checks everything first: what is wrong rejects before anything is made or paid. */
export const startRun = (options: RunOptions & Surroundings): Promise<Running<RunOutcome>> =>
  startWork(options, async (caller) => {
    const results = resolve(caller.cwd, options.results);
    const prepared = await prepareRun({ ...options, results }, caller);
    await preflight(prepared.resolved, caller);
    mkdirSync(results, { recursive: true });
    const store = openStore(databasePath(results));
    try {
      return await beginRun(store, prepared, caller);
    } finally {
      store.close();
    }
  });

/** Goes on with a run from its record alone. */
export const resumeRun = (options: ResumeOptions & Surroundings): Promise<Running<RunOutcome>> =>
  startWork(options, async (caller) => {
    const results = resolve(caller.cwd, options.results);
    const store = openStore(databasePath(results));
    try {
      return await goOnWithRun(store, { ...options, results }, caller);
    } finally {
      store.close();
    }
  });
