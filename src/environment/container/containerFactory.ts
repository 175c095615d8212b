/**
 * The factory of environments that are containers. A driver, of Docker or of pods, opens a container; sealing, set-up and the start tree follow here.
 * A start that its engine cut off, or asked to come again, is made anew from its beginning, at most `START_TRIES` times. Nothing below tries a start again,
 * and above there is the retry of the trial alone.
 */
import { createTurnstile } from '../../base/async/room.ts';
import { pause } from '../../base/async/timer.ts';
import {
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  type EnvironmentInfo,
  type HistoryState,
  type StartRequest,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { EnvironmentOptions } from '../environmentKind.ts';
import type { GitSnapshot } from '../patch/capture.ts';
import { createEngineWatch, type EngineWatch } from '../places/engineWatch.ts';
import { type Channels, type Container, environmentIn } from './container.ts';
import { createPreparedStarts } from './preparedStarts.ts';
import { createRemovals, type Removal } from './removals.ts';
import { phasesOf, setUp } from './setup.ts';

/** Parts of a factory that its driver uses. */
export interface FactoryParts {
  readonly watch: EngineWatch;
  /** Removes the container, now or as soon as the engine does. Never rejects. */
  discard(removal: Removal): Promise<void>;
  /** Work of the engine in turn. Waiting for that is the phase `queue`, which has no deadline; then `phase` goes on. */
  inTurn<T>(request: StartRequest, phase: string, work: () => Promise<T>): Promise<T>;
}

export interface Driver {
  /** One try, which removes all that it made before it rejects. `notes` may come until the environment is ready. */
  open(request: StartRequest, notes: string[]): Promise<OpenedContainer>;
  /** The engine went away in the middle of a start: nothing is said about what was started. */
  cutOff(error: unknown): boolean;
  holdsWork: EnvironmentFactory['holdsWork'];
  systemChanges: EnvironmentFactory['systemChanges'];
  discardWork: EnvironmentFactory['discardWork'];
  close(): Promise<void>;
}

/** A container that runs, and the steps until it is ready, in this order. */
export interface OpenedContainer {
  readonly container: Container;
  readonly channels: Channels;
  /** Starts its needs before anything of the task: services, a way out, the ENTRYPOINT. Resolves to its own configuration. */
  ready(): Promise<EnvironmentConfig>;
  seal(config: EnvironmentConfig): Promise<HistoryState>;
  /** The start tree that its image has, as long as no command changes it. */
  readonly known?: GitSnapshot | undefined;
  /** After the set-up: rejects where a need of the container has ended. */
  check(): Promise<Pick<EnvironmentInfo, 'image' | 'imageDigest' | 'volumes'>>;
  /** The environment with the driver's parts around it. */
  within(environment: Environment): Environment;
}

interface FactoryOptions extends Pick<EnvironmentOptions, 'onWarning' | 'graceMs' | 'watch' | 'snapshot'> {
  readonly kind: string;
  readonly ping: () => Promise<unknown>;
  /** How long the engine is waited for by a factory without a watch of its own. */
  readonly outageMs: number;
  /** Containers started ahead of their slot. */
  readonly maxPrepared?: number | undefined;
  readonly driver: (parts: FactoryParts) => Driver;
}

/** More parallel starts only slow each other down, and each prepared container stands beside those of the slots. */
const PARALLEL_STARTS = 8;
const START_TRIES = 5;
const AGAIN_MS = 250;

export function createContainerFactory(options: FactoryOptions): EnvironmentFactory {
  const { kind, onWarning: warn, graceMs } = options;
  const watch = options.watch ?? createEngineWatch({ ping: options.ping, limitMs: options.outageMs });
  const removals = createRemovals({ watch, warn, graceMs });
  const turnstile = createTurnstile(PARALLEL_STARTS);
  const driver = options.driver({
    watch,
    discard: removals.discard,
    inTurn({ signal, onPhase }, phase, work) {
      let waited = false;
      const begin = () => {
        if (waited) onPhase?.(phase);
        return work();
      };
      return turnstile(begin, signal, () => {
        waited = true;
        onPhase?.('queue');
      });
    },
  });
  const begin = async (request: StartRequest): Promise<Environment> => {
    for (let tried = 1; ; tried += 1)
      try {
        return await startOnce(driver, request, options);
      } catch (error) {
        const again = driver.cutOff(error) || (error instanceof EnvironmentError && error.again);
        if (!again || request.signal?.aborted || tried === START_TRIES) throw error;
        // Nothing of the agent's has run.
        await watch.back(request.signal);
        await pause(AGAIN_MS * 2 ** tried, request.signal);
      }
  };
  const prepared = createPreparedStarts(begin, options.maxPrepared ?? PARALLEL_STARTS);
  let closed = false;
  return {
    kind,
    prepare: prepared.prepare,
    async start(request) {
      if (closed) throw new EnvironmentError('start_failed', 'the environment factory is closed');
      return prepared.take(request) ?? begin(request);
    },
    holdsWork: driver.holdsWork,
    systemChanges: driver.systemChanges,
    discardWork: driver.discardWork,
    awayMs: () => (options.watch ? 0 : watch.awayMs()),
    async close() {
      closed = true;
      await prepared.close();
      await driver.close();
      await removals.close();
      if (!options.watch) watch.close();
    },
  };
}

async function startOnce(
  driver: Driver,
  request: StartRequest,
  { kind, snapshot: wanted }: FactoryOptions,
): Promise<Environment> {
  const notes: string[] = [];
  phasesOf(request)('pull');
  const opened = await driver.open(request, notes);
  const { container, channels, known } = opened;
  try {
    const config = await opened.ready();
    const history = config.seal_history ? await opened.seal(config) : 'skipped';
    const snapshot = await setUp(channels, config, request, { snapshot: wanted, known });
    const facts = await opened.check();
    request.signal?.throwIfAborted();
    const { transport } = channels.worker ?? channels.own;
    const info = { kind, ...facts, history, containerId: container.id, transport, notes };
    return opened.within(await environmentIn(container, channels, config, snapshot, info));
  } catch (error) {
    for (const channel of [channels.own, channels.worker]) channel?.close();
    await container.remove();
    throw error;
  }
}
