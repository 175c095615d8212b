/** Answers by the request that they belong to: a request that comes twice is asked and paid once. */
import { createHash } from 'node:crypto';
import type { Answer } from './answer.ts';
import type { Asked } from './policy.ts';

export interface CallBook {
  /** An answer that is on its way, that nobody has got, or that a client asks for again; null where the request must go out. */
  find(key: string, again: boolean): Answer | null;
  remember(key: string, answer: Answer): void;
  clear(): void;
}

/** So many answers that have come are kept in case that they are asked for again. */
const KEPT = 8;

export function requestKey({ dialect, operation, model }: Asked, query: string, body: Buffer): string {
  return createHash('sha256')
    .update(`${dialect} ${operation} ${model} ${query}\n`)
    .update(body)
    .digest('base64');
}

export function createCallBook(): CallBook {
  const known = new Map<string, Answer>();
  return {
    find(key, again) {
      const answer = known.get(key);
      const outcome = answer?.outcome();
      if (!answer || outcome === null) return answer ?? null;
      if (outcome?.kind === 'whole' && (again || !answer.isDelivered())) return answer;
      known.delete(key);
      return null;
    },
    remember(key, answer) {
      known.set(key, answer);
      const ended = [...known].filter(([, one]) => one.outcome() !== null);
      for (const [old] of ended.slice(0, Math.max(0, ended.length - KEPT))) known.delete(old);
    },
    clear: () => known.clear(),
  };
}
