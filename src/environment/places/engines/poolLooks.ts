/** Asks the engines of a pool whether they answer. */
import { errorText } from '../../../base/text/errorText.ts';
import { daemonAnswer } from './daemonAnswer.ts';
import type { PoolShell } from './poolShell.ts';
import { isAway, type PoolEngine, takes } from './poolState.ts';

const PING_MS = 15_000;
const LOOK_MS = 5_000;

/** Engines that were lost, asked last at least so long ago, are asked whether they are back. */
export async function revive(shell: PoolShell, afterMs: number): Promise<void> {
  const due = [...shell.state().engines.values()].filter(
    (engine) => !engine.removed && (isDue(shell, engine, afterMs) || (afterMs === 0 && silent(engine))),
  );
  await Promise.all(due.map(({ name }) => ask(shell, name)));
}

const silent = ({ silentSince }: PoolEngine): boolean => silentSince !== undefined;

const isDue = ({ now, asked }: PoolShell, engine: PoolEngine, afterMs: number): boolean =>
  isAway(engine) && now() - (asked.get(engine.name) ?? 0) >= afterMs;

/** An engine where work has just failed is left alone for a while, although it may answer: it gets no trial before that. */
export async function lookAt(shell: PoolShell): Promise<void> {
  const asked = [...shell.state().engines.values()].filter(
    ({ removed, failedAt }) =>
      !removed && (failedAt === undefined || shell.now() - failedAt >= shell.retryMs),
  );
  await Promise.all(asked.map(({ name }) => ask(shell, name)));
}

/** Whether it takes trials, once it has been asked. */
export async function askNow(shell: PoolShell, name: string): Promise<boolean> {
  await ask(shell, name);
  return takes(shell.state().engines.get(name)!);
}

async function ask(shell: PoolShell, name: string): Promise<void> {
  const began = shell.now();
  try {
    await daemonAnswer(shell.engines.get(name)!.ping(), PING_MS);
    const engine = shell.state().engines.get(name)!;
    if (isAway(engine) || silent(engine)) shell.apply({ is: 'answered', engine: name, at: shell.now() });
  } catch (error) {
    const now = shell.now();
    shell.asked.set(name, now);
    // A ping that was under way while this machine slept says nothing about that time.
    shell.apply({ is: 'silent', engine: name, at: Math.max(began, now - PING_MS) }, errorText(error));
  }
}

/** Looks every few seconds, until the returned function is called. One look does not begin before the last has ended. */
export function keepLooking(look: () => Promise<void>, everyMs = LOOK_MS): () => void {
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look().finally(() => {
      looking = false;
    });
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
