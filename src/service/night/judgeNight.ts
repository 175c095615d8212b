/** `judgeNight`: a gate from a program. */
import { resolve } from 'node:path';
import { openStore } from '../../store/open.ts';
import { databasePath } from '../resultsRoot.ts';
import { type Running, type Surroundings, startWork } from '../running.ts';
import { judgeRun, type NightOptions, type NightVerdict, requireBaseline } from './judgeRun.ts';

export const judgeNight = (options: NightOptions & Surroundings): Promise<Running<NightVerdict>> =>
  startWork(options, async (caller, begun) => {
    const results = resolve(caller.cwd, options.results);
    const store = openStore(databasePath(results));
    try {
      requireBaseline(store, options.baseline, { name: options.run });
      begun();
      return await judgeRun(store, { ...options, results }, caller);
    } finally {
      store.close();
    }
  });
