/** A daemon that has locked up takes every request and answers none, so a request waits no longer than a limit. */
import { within } from '../../../base/async/timer.ts';

/** Long for a short request, even on an overloaded machine. */
const ANSWER_LIMIT_MS = 60_000;

export async function daemonAnswer<T>(work: Promise<T>, limitMs = ANSWER_LIMIT_MS): Promise<T> {
  const answer = await within(
    work.then((value) => ({ value })),
    limitMs,
  );
  if (answer) return answer.value;
  throw new Error(`the Docker daemon took the request and gave no answer within ${limitMs / 1000} s`);
}
