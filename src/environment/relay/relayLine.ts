/** The stream of one relay from its start to its end: frames become connections, and the cause of the end is told once. */
import type { Duplex } from 'node:stream';
import { startTimer } from '../../base/async/timer.ts';
import { type Doorway, EnvironmentError } from '../environment.ts';
import { createCarrier } from './carrier.ts';

const READY_MS = 30_000;
const ERROR_TEXT = 500;

export function createRelayLine({
  port,
  onConnection,
  stream,
  loss,
  remove,
}: {
  readonly port: number;
  onConnection(connection: Duplex): void;
  readonly stream: { write(frame: Buffer): unknown; destroy(): unknown };
  /** The reason of the loss, as the engine knows it. `said`: the relay's words on its stderr. Never rejects. */
  loss(message: string, said: string, cause: unknown): Promise<EnvironmentError>;
  /** Removes the relay, when the line is closed. Called once; never rejects. */
  remove(): Promise<unknown>;
}) {
  const ready = Promise.withResolvers<null>();
  const broken = Promise.withResolvers<EnvironmentError>();
  let closing: Promise<void> | undefined;
  let closed = false;
  let said = '';
  let over = false;
  const broke = (message: string, cause?: unknown): void => {
    if (over) return;
    over = true;
    carrier.abandon();
    stream.destroy();
    if (!closed) void loss(message, said, cause).then(broken.resolve);
  };
  const carrier = createCarrier({
    write: (frame) => {
      if (!over) stream.write(frame);
    },
    onReady: () => ready.resolve(null),
    onConnection,
  });
  const close = (): Promise<void> => {
    closing ??= (async () => {
      closed = true;
      broke('closed');
      await remove();
    })();
    return closing;
  };
  return {
    stdout(data: Buffer): void {
      if (over) return;
      try {
        carrier.feed(data);
      } catch (error) {
        broke((error as Error).message, error);
      }
    },
    stderr(data: Buffer): void {
      said = (said + data.toString('latin1')).slice(0, ERROR_TEXT);
    },
    broke,
    /** Resolves once the relay listens. Throws EnvironmentError when it does not come to that; it is removed then. */
    async opened(): Promise<Doorway> {
      const late = startTimer(READY_MS, () => broke(`the relay did not open port ${port} in time`));
      const first = await Promise.race([ready.promise, broken.promise]);
      late.cancel();
      if (!first) return { port, broken: broken.promise, close };
      await close();
      throw new EnvironmentError('start_failed', first.message, { evidence: first.evidence });
    },
  };
}
