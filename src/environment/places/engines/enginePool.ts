/**
 * Several engines as places for environments: which have room, which were lost and may be back, which join and leave while a run works.
 * A placed trial waits for its own engine, so that its image is made ready where it will be used. Shared by all arms of a run: the slots
 * of an engine are counted once. poolState.ts decides; this file asks the engines, and wakes those who wait.
 */
import { EnvironmentError, type Place } from '../../environment.ts';
import { askNow, lookAt, revive } from './poolLooks.ts';
import { openPlace } from './poolPlace.ts';
import {
  createShell,
  type EnginePoolOptions,
  type LeaseEnd,
  type PooledEngine,
  type PoolListener,
  type PoolShell,
} from './poolShell.ts';
import { activeOn, assignedTo, isAway, type PoolEngine, phaseOf, takes } from './poolState.ts';

export { EngineDrains, type EnginePoolOptions, type PooledEngine, type PoolListener } from './poolShell.ts';

interface EngineState {
  readonly name: string;
  readonly active: number;
  readonly lost: boolean;
}

/** What became of a request to drain; `last`: no other engine would take trials. */
export type DrainAnswer =
  | { readonly is: 'draining' | 'already'; readonly active: number }
  | { readonly is: 'unknown' }
  | { readonly is: 'last' };

export interface EnginePool {
  /** The engine with fewest places taken in proportion to its slots; `prefer` narrows the choice where it leaves one. */
  choose(prefer?: (host: string) => boolean): Promise<Place>;
  lose(host: string, reason: string): void;
  /** The engine gets no new places; what runs on it goes on. `evenLast`: the run may be left without any. */
  drain(host: string, evenLast?: boolean): DrainAnswer;
  /** As drain, and what runs on it ends. */
  remove(host: string): DrainAnswer;
  /** From now on it takes places, also when it was drained or removed before. */
  join(engine: PooledEngine): void;
  alive(): readonly string[];
  drains(host: string): boolean;
  /** Trials placed there, entered or not, and its slots (0: no limit). */
  load(host: string): { readonly placed: number; readonly slots: number };
  /** Resolves when one of them answers; rejects with their names. */
  anyAnswers(): Promise<unknown>;
  states(): EngineState[];
  /** Fires when what runs on the engine has to end: it was lost or removed. The reason is the error of the attempts. */
  endOf(host: string): AbortSignal;
  /** Asks one engine at once; false where it takes no trials. */
  takesNow(host: string): Promise<boolean>;
  /** Asks every engine once whether it answers. */
  look(): Promise<void>;
  /** Sends who waits for a full engine where there is room. */
  balance(): void;
  /** Tells who follows that an attempt has its environment there. Returns what ends that, with how it ended. */
  lease(host: string, attempt: string): (how: LeaseEnd) => void;
  follow(listener: PoolListener): void;
  /** The same engines for work that takes no slots: gradings. */
  beside(): EnginePool;
}

const RETRY_MS = 30_000;

export const isLoss = (error: unknown): error is EnvironmentError =>
  error instanceof EnvironmentError && (error.code === 'daemon_lost' || error.sub === 'daemon_lost');

const noneAnswers = (names: readonly string[]): string =>
  names.length === 0
    ? 'no engine takes trials: all are drained, or none has joined'
    : `none of the engines answers (${names.join(', ')})`;

export function createEnginePool(
  engines: readonly PooledEngine[],
  options: EnginePoolOptions = {},
): EnginePool {
  const { now = () => performance.now(), retryMs = RETRY_MS, onChange = () => {} } = options;
  const shell = createShell({ now, retryMs, onChange });
  for (const engine of engines) shell.join(engine);
  return poolOf(shell, false);
}

/** Those that are there for new trials, now or once they answer. */
const wantedOf = ({ state }: PoolShell): PoolEngine[] =>
  [...state().engines.values()].filter(({ draining }) => !draining);

const namesOf = (engines: readonly PoolEngine[]) => engines.map(({ name }) => name);

function poolOf(shell: PoolShell, beside: boolean): EnginePool {
  const engine = (host: string) => shell.state().engines.get(host);
  return {
    choose: (prefer = () => true) => chooseFrom(shell, prefer, beside),
    lose(host, reason) {
      shell.asked.set(host, shell.now());
      shell.apply({ is: 'failed', engine: host, at: shell.now() }, reason);
    },
    drain: (host, evenLast = false) => leave(shell, 'drain', host, evenLast),
    remove: (host) => leave(shell, 'remove', host, false),
    join: shell.join,
    drains: (host) => engine(host)?.draining ?? false,
    load: (host) => ({
      placed: assignedTo(shell.state(), host, beside),
      slots: engine(host)?.slots ?? 0,
    }),
    // One that is silent may be back at once; until then nothing is asked of it.
    alive: () =>
      namesOf(
        [...shell.state().engines.values()].filter(
          (e) => !isAway(e) && !e.removed && e.silentSince === undefined,
        ),
      ),
    anyAnswers() {
      // One that is drained does not help those who wait.
      const asked = namesOf(wantedOf(shell));
      return Promise.any(asked.map((name) => shell.engines.get(name)!.ping())).catch(() => {
        throw new Error(noneAnswers(asked));
      });
    },
    states: () =>
      [...shell.state().engines.values()]
        .filter((e) => !e.removed || activeOn(shell.state(), e.name) > 0)
        .map((e) => ({ name: e.name, active: activeOn(shell.state(), e.name), lost: isAway(e) })),
    endOf: shell.endOf,
    takesNow: (host) => askNow(shell, host),
    look: () => lookAt(shell),
    balance: () => void shell.apply({ is: 'balance' }),
    lease: shell.lease,
    follow: (listener) => {
      shell.listeners.push(listener);
      for (const one of shell.state().engines.values()) {
        listener.joined?.(shell.engines.get(one.name)!);
        listener.changed?.(one.name, phaseOf(shell.state(), one), '');
      }
    },
    beside: () => poolOf(shell, true),
  };
}

async function chooseFrom(
  shell: PoolShell,
  prefer: (host: string) => boolean,
  beside: boolean,
): Promise<Place> {
  const wanted = wantedOf(shell);
  await revive(shell, wanted.some(takes) ? shell.retryMs : 0);
  const ready = namesOf([...shell.state().engines.values()].filter(takes));
  const ticket = shell.newTicket();
  const { decisions } = shell.apply({ is: 'choose', ticket, among: ready.filter(prefer), beside });
  const [placed] = decisions;
  if (placed?.is === 'placed') return openPlace(shell, ticket, placed.engine, beside);
  throw new EnvironmentError('daemon_lost', `${noneAnswers(namesOf(wanted))}; start one and resume`);
}

function leave(shell: PoolShell, is: 'drain' | 'remove', host: string, evenLast: boolean): DrainAnswer {
  const engine = shell.state().engines.get(host);
  if (!engine) return { is: 'unknown' };
  const active = activeOn(shell.state(), host);
  if (is === 'drain' ? engine.draining : engine.removed) return { is: 'already', active };
  // A lost one counts: it may be back, and a run without any engine would wait for ever.
  if (!evenLast && !wantedOf(shell).some(({ name }) => name !== host)) return { is: 'last' };
  shell.apply({ is, engine: host });
  return { is: 'draining', active };
}
