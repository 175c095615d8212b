/** What a pull stage has to say: events as they happen, and its state when asked. */
import type { EnvironmentError } from '../../../environment.ts';
import type { ReadyImage } from '../localImages.ts';
import type { PullProgress } from './pullProgress.ts';

export type PullEventForPeople =
  | { readonly type: 'progress'; readonly image: string; readonly progress: PullProgress }
  | {
      readonly type: 'retry';
      readonly image: string;
      readonly attempt: number;
      readonly message: string;
      readonly waitMs: number;
    }
  | {
      readonly type: 'paused';
      readonly reason: 'rate_limited' | 'budget';
      readonly until: number;
      readonly message: string;
      /** Which one refuses; a budget holds for all. */
      readonly registry?: string;
    };

export type StageEvent =
  | PullEventForPeople
  | { readonly type: 'started'; readonly image: string }
  | { readonly type: 'ready'; readonly ready: ReadyImage }
  | { readonly type: 'failed'; readonly image: string; readonly error: EnvironmentError };

export interface StageStatus {
  readonly active: readonly {
    readonly image: string;
    readonly sinceMs: number;
    readonly progress: PullProgress | undefined;
  }[];
  readonly waiting: number;
  readonly ready: number;
  /** What is paused the longest; `registry`: whose refusal it is. */
  readonly paused: PullPause | undefined;
}

interface PullPause {
  readonly reason: 'rate_limited' | 'budget';
  readonly until: number;
  readonly registry?: string;
}
