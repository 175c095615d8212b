/**
 * Environments begun before a slot is free for them. Each is taken once, by a request for the same thing, or given up when its signal
 * fires or the factory closes; given up means that its start is aborted and its container removed.
 */
import type { EgressConnection, Environment, StartRequest } from '../environment.ts';

interface Begun {
  readonly environment: Promise<Environment>;
  readonly abort: AbortController;
  /** The phase of the start, and the listener to the next ones. */
  phase: string;
  onPhase: (phase: string) => void;
  /** Connections that nobody was told of yet. */
  connections: EgressConnection[];
  onConnection: (connection: EgressConnection) => void;
  unlisten(): void;
}

/** All differences between two environments: a container of another image or setup is never handed out. */
const keyOf = ({ owner, instanceId, image, startupCommand, baseCommit, container }: StartRequest) =>
  JSON.stringify([owner.run, owner.attempt, instanceId, image, startupCommand, baseCommit, container]);

export function createPreparedStarts(begin: (request: StartRequest) => Promise<Environment>, max: number) {
  const open = new Map<string, Begun>();
  const leaving = new Set<Promise<unknown>>();
  let closed = false;

  const giveUp = (key: string, reason: unknown) => {
    const begun = open.get(key);
    if (!begun) return;
    open.delete(key);
    begun.unlisten();
    begun.abort.abort(reason);
    const gone = begun.environment
      .then(
        (environment) => environment.close(),
        () => undefined,
      )
      .finally(() => leaving.delete(gone));
    leaving.add(gone);
  };

  return {
    prepare(request: StartRequest): void {
      const key = keyOf(request);
      const { signal } = request;
      if (closed || signal?.aborted || open.has(key) || open.size >= max) return;
      const abort = new AbortController();
      const onAbort = () => giveUp(key, signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      const onPhase = (phase: string) => {
        begun.phase = phase;
        begun.onPhase(phase);
      };
      const begun: Begun = {
        environment: Promise.resolve().then(() =>
          begin({
            ...request,
            signal: abort.signal,
            onPhase,
            onConnection: (one) => begun.onConnection(one),
          }),
        ),
        abort,
        phase: 'start',
        onPhase: () => undefined,
        connections: [],
        onConnection: (one) => void begun.connections.push(one),
        unlisten: () => signal?.removeEventListener('abort', onAbort),
      };
      // The failure is told to who takes the start.
      begun.environment.catch(() => undefined);
      open.set(key, begun);
    },
    /** The start that was begun for this request; undefined when there is none. */
    take(request: StartRequest): Promise<Environment> | undefined {
      const key = keyOf(request);
      const begun = open.get(key);
      if (!begun) return undefined;
      open.delete(key);
      begun.unlisten();
      const { signal, onPhase, onConnection = () => undefined } = request;
      begun.connections.forEach(onConnection);
      begun.onConnection = onConnection;
      if (onPhase) {
        begun.onPhase = onPhase;
        onPhase(begun.phase);
      }
      const onAbort = () => begun.abort.abort(signal?.reason);
      if (signal?.aborted) onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
      return begun.environment.finally(() => signal?.removeEventListener('abort', onAbort));
    },
    /** Gives up starts that nobody took and waits until they are gone. */
    async close(): Promise<void> {
      closed = true;
      for (const key of [...open.keys()]) giveUp(key, new Error('the environment factory is closed'));
      while (leaving.size > 0) await Promise.allSettled([...leaving]);
    },
  };
}
