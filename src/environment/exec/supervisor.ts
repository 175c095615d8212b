/**
 * The host's side of the supervisor. A stream that a background process still holds open is retired (kept drained, so that the process
 * never blocks) and a fresh one takes the following commands: late output never lands in another command's.
 */
import { within } from '../../base/async/timer.ts';
import type { StartProcess } from './ports.ts';
import { openSession, type SupervisorSession } from './supervisorSession.ts';
import type { Transport, TransportCommand } from './transport.ts';

/** Beyond this many streams that are really held a container is the agent's own chaos: late output may then mix in. */
const MAX_RETIRED = 8;
/** How long one of them may take to say whether it is still held. */
const PROBE_MS = 200;
/** Run on a stream to learn that; what was left in the stream is dropped with its output. */
const NOTHING: TransportCommand = { command: ':', cwd: '/', env: {}, maxOutputBytes: 4096, harness: true };

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
    if (!session?.alive()) {
      session = await open(keep);
      keep = session.keep;
    }
    return session;
  };

  const reset = () => {
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
      const running = (await ready()).run(command);
      return {
        ...running,
        ended: running.ended.then((end) => {
          if (end.kind === 'exit' && end.held) retireNext = true;
          return end;
        }),
      };
    },
    async killAll() {
      // Not by a new stream, also when this one is held: where the process limit is reached none can be opened.
      const done = await (session?.alive() ? session : await ready()).killAll();
      for (const old of retired) old.session.close();
      retired = [];
      retireNext = false;
      return done;
    },
    reset,
    lastWords: () => session?.words() ?? '',
    close: reset,
  };
}

/** One of the retired whose holder has ended since. */
async function findFree(retired: readonly Retired[]): Promise<Retired | undefined> {
  for (const old of retired) {
    old.probe ??= old.session.run(NOTHING).ended.then((end) => end.kind === 'exit' && !end.held);
    const free = await within(old.probe, PROBE_MS);
    if (free === undefined) continue;
    old.probe = undefined;
    if (free) return old;
  }
  return undefined;
}
