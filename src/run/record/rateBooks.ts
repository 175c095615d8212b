/** Limits of keys, in the record that all processes of a results root share. */
import type { RateBook } from '../../model/limits/sharedRate.ts';
import {
  correctRate,
  learnedRates,
  learnRates,
  pauseRate,
  ratePausedUntil,
  takeRate,
} from '../../store/live/rates.ts';
import type { Store } from '../../store/open.ts';

export const rateBooks =
  (store: Store) =>
  (account: string): RateBook => ({
    take: (ask) => takeRate(store, { ...ask, account }),
    correct: (at, tokens) => void correctRate(store, account, at, tokens),
    learn: (limits, at) => void learnRates(store, account, limits, at),
    learned: (at) => learnedRates(store, account, at),
    pause: (until, at) => void pauseRate(store, account, until, at),
    pausedUntil: (at) => ratePausedUntil(store, account, at),
  });
