/**
 * The host's side of the supervisor. A stream that a background process still holds open is retired (kept drained, so that the process
 * never blocks) and a fresh one takes the following commands: late output never lands in another command's.
 */
import { within } from '../../base/async/timer.ts';
import { openSession, type SessionCommand, type SupervisorSession } from './supervisorSession.ts';
import type { CommandEnd, RunningCommand, StartProcess, Transport } from './transport.ts';

/** Beyond this many streams that are really held a container is the agent's own chaos: late output may then mix in. */
const MAX_RETIRED = 8;
/** How long a stream may take to say whether it is still held. */
const PROBE_MS = 200;
/** How long a keeper may take to say whether it has begun a command. The keeper says nothing while one runs that cannot be killed. */
const BEGAN_MS = 10_000;
interface Retired {
  readonly session: SupervisorSession;
  /** Under way: true when nobody holds the stream any more. */
  probe: Promise<boolean> | undefined;
}

/** Starts the first session, so that an image that cannot run it is known at once (the caller then takes the plain exec path). */
export async function createSupervisorTransport(
  startProcess: StartProcess,
  interpreter: readonly string[],
  startTimeoutMs: number,
): Promise<Transport> {
  const open = (keep: string) => openSession(startProcess, interpreter, keep, startTimeoutMs);
  let session: SupervisorSession | undefined = await open('');
  let { keep } = session;
  let retired: Retired[] = [];
  let retireNext = false;
  /** The number of the container's life: each life has its own keeper, which knows nothing of commands before. */
  let life = 0;

  const ready = async (): Promise<SupervisorSession> => {
    if (session && retireNext && session.alive()) {
      retired = retired.filter((old) => old.session.alive());
      const free = retired.length < MAX_RETIRED ? undefined : await findFree(retired);
      retired = retired.filter((old) => old !== free);
      if (retired.length < MAX_RETIRED) {
        retired.push({ session, probe: undefined });
        session = free?.session;
      }
    }
    retireNext = false;
    const now = life;
    if (!session?.alive()) {
      const opened = await open(keep).catch((error: unknown) => {
        // Where processes that were left take every place there is no new stream: on a held one the keeper says that it cannot fork.
        const held = retired.findLast((old) => old.session.alive());
        retired = retired.filter((old) => old !== held);
        if (!held) throw error;
        return held.session;
      });
      if (life !== now) {
        opened.close();
        throw new Error('the container was started anew meanwhile');
      }
      session = opened;
      keep = session.keep;
    }
    return session;
  };

  const reset = () => {
    life += 1;
    for (const old of retired) old.session.close();
    session?.close();
    retired = [];
    session = undefined;
    // After a restart the container's own processes have other ids.
    keep = '';
  };

  return {
    name: 'supervisor',
    async run(command) {
      const its = await ready();
      const lifeOfIt = life;
      const inLife = () => (life === lifeOfIt ? ready() : Promise.reject(new Error('its keeper is gone')));
      const running = survive(its, its.run(command), inLife, (session) => session.run(command));
      void running.ended.then((end) => {
        if (end.kind === 'exit' && end.held) retireNext = true;
      });
      return running;
    },
    async killAll() {
      // Not by a new stream, also when this one is held: where the process limit is reached none can be opened.
      const done = await (session?.alive() ? session : await ready()).killAll();
      for (const old of retired) old.session.close();
      retired = [];
      retireNext = false;
      return done;
    },
    left: async () => (await ready()).left(),
    reset,
    lastWords: () => session?.words() ?? '',
    close: reset,
  };
}

/**
 * A command that kills all it can kills its supervisor, and may live on itself: the keeper still knows how it ends. A supervisor that was only cut
 * off has its command killed by the caller that learns of the loss.
 */
function survive(
  its: SupervisorSession,
  running: SessionCommand,
  next: () => Promise<SupervisorSession>,
  again: (session: SupervisorSession) => SessionCommand,
): RunningCommand {
  let killed = false;
  let hand: Pick<RunningCommand, 'kill'> = running;
  let printed: Pick<RunningCommand, 'output'> = running;
  const goOn = (other: Pick<RunningCommand, 'ended' | 'kill'>) => {
    hand = other;
    if (killed) hand.kill();
    return other.ended;
  };
  const toTheEnd = async (): Promise<CommandEnd> => {
    const end = await running.ended;
    if (end.kind !== 'lost' || running.nonce === '' || !(await its.survived())) return end;
    const session = await next().catch(() => undefined);
    if (!session) return end;
    const known = await goOn(session.recover(running));
    // The supervisor was dead before it took the command.
    if (known.kind !== 'unstarted') return known;
    const second = again(session);
    printed = second;
    return goOn(second);
  };
  return {
    transport: running.transport,
    ended: toTheEnd(),
    kill: () => {
      killed = true;
      return hand.kill();
    },
    output: () => printed.output(),
    async neverBegan() {
      if (hand !== running || running.nonce === '' || !(await its.over())) return false;
      const session = await next().catch(() => undefined);
      if (!session) return false;
      const asked = session.recover(running);
      // The keeper answers when it has nothing to run.
      void asked.kill();
      return (await within(asked.ended, BEGAN_MS))?.kind === 'unstarted';
    },
  };
}

/** A retired session whose holder has ended since. */
async function findFree(retired: readonly Retired[]): Promise<Retired | undefined> {
  for (const old of retired) {
    old.probe ??= old.session.free();
    const free = await within(old.probe, PROBE_MS);
    if (free === undefined) continue;
    old.probe = undefined;
    if (free) return old;
  }
  return undefined;
}
