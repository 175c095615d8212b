/** A daemon that has locked up takes every question and answers none: what is asked of it waits no longer than a limit. */
import { within } from '../../base/async/timer.ts';

/** Long for a short question, on a machine with far too much to do. */
const ANSWER_LIMIT_MS = 60_000;

export async function daemonAnswer<T>(work: Promise<T>, limitMs = ANSWER_LIMIT_MS): Promise<T> {
  const answer = await within(
    work.then((value) => ({ value })),
    limitMs,
  );
  if (answer) return answer.value;
  throw new Error(`the Docker daemon took the request and gave no answer within ${limitMs / 1000} s`);
}
