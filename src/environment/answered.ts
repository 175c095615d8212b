/** A daemon that has locked up takes every question and answers none: short questions wait no longer than a limit. */

/** Long for a short question, on a machine with far too much to do. */
const ANSWER_LIMIT_MS = 60_000;

export async function answered<T>(work: Promise<T>, limitMs = ANSWER_LIMIT_MS): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Error(`the Docker daemon did not answer in ${limitMs / 1000} s`)),
    limitMs,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
