/** Errors of the Docker client, read into facts: status, daemon gone, container gone. */

import { z } from 'zod';
import { retry, within } from '../../base/async/timer.ts';

const shape = z.object({
  statusCode: z.number().optional(),
  code: z.string().optional(),
  reason: z.string().optional(),
  message: z.string().default(''),
  /** The engine's answer, where there was one. */
  json: z.object({ message: z.string() }).optional().catch(undefined),
});

const SOCKET_CODES = new Set([
  'ENOENT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EACCES',
  'ENOTFOUND',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EAI_AGAIN',
]);

const NO_ANSWER = 'ENOANSWER';

/**
 * `daemonGone`: the daemon did not answer; socket missing, refused, cut. `unanswered`: it took the request, and that was all (T-35; the second
 * observed: tests/environment/docker/lockedDaemon.test.ts).
 */
export function readFault(error: unknown) {
  const parsed = shape.safeParse(error);
  if (!parsed.success)
    return { status: undefined, daemonGone: false, unanswered: false, text: String(error) };
  const { statusCode, code, message, json } = parsed.data;
  return {
    status: statusCode,
    daemonGone: statusCode === undefined && (SOCKET_CODES.has(code ?? '') || /socket hang up/i.test(message)),
    unanswered: code === NO_ANSWER,
    // dockerode puts "(HTTP code 404) no such image - " before the engine's words.
    text: (json?.message ?? message.replace(/^\(HTTP code \d+\) [^-]* - /, '')).trim(),
  };
}

/**
 * Undefined where the engine says that there is no such thing. Whatever else went wrong says nothing of it, and is thrown (observed:
 * tests/environment/docker/unansweredImage.test.ts).
 */
export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (readFault(error).status === 404) return undefined;
    throw error;
  }
}

/** Waits between tries of an operation while an engine is started anew: half a minute in all (T-35). */
const DAEMON_RETRY_MS: readonly number[] = [100, 400, 1000, 2500, 4000, 5000, 7000, 10_000];

/** An engine that answers 5xx is there: half a minute changes less than a moment (T-36). */
const CONFUSED_TRIES = 4;

/** Runs `work` again while the daemon is unreachable or answers 5xx. */
export function withDaemonRetry<T>(
  work: () => Promise<T>,
  waits: readonly number[] = DAEMON_RETRY_MS,
): Promise<T> {
  return retry(work, {
    delayMs: (error, tried) => {
      const fault = readFault(error);
      if (fault.daemonGone) return waits[tried - 1];
      return (fault.status ?? 0) >= 500 && tried <= CONFUSED_TRIES ? waits[tried - 1] : undefined;
    },
  });
}

/** Long for a short request, even on an overloaded machine. */
const ANSWER_LIMIT_MS = 60_000;

/**
 * A daemon that has locked up takes every request and answers none, so a request waits no longer than a limit (observed:
 * tests/environment/docker/lockedDaemon.test.ts).
 */
export async function daemonAnswer<T>(work: Promise<T>, limitMs = ANSWER_LIMIT_MS): Promise<T> {
  const answer = await within(
    work.then((value) => ({ value })),
    limitMs,
  );
  if (answer) return answer.value;
  throw Object.assign(
    new Error(`the Docker daemon took the request and gave no answer within ${limitMs / 1000} s`),
    { code: NO_ANSWER },
  );
}
