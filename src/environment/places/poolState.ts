/**
 * Which engine takes which trial, as a pure function: what happened goes in, what is to be done comes out. Times are monotonic
 * milliseconds, and nothing here looks at a clock or asks an engine.
 *
 *   ready ──> silent ── a minute ──> lost: its attempts end
 *     │ └──── failed ──> gets nothing before it has been asked again
 *     │   <── answered ── from each of these
 *     └── refuse: gets nothing any more
 */

export interface PoolEngine {
  readonly name: string;
  /** Trials at one time; 0 means no limit of its own. */
  readonly slots: number;
  /** It does not fit the others, so it gets no trials. */
  readonly refused: boolean;
  /** Since when it does not answer. */
  readonly silentSince: number | undefined;
  /** When work there failed because the engine was not reached. It gets nothing before it has been asked again. */
  readonly failedAt: number | undefined;
  /** It did not answer for a minute, and what ran there has ended. */
  readonly lost: boolean;
}

/** A trial on its way to an engine, or there. */
interface Ticket {
  readonly engine: string;
  readonly stage: 'placed' | 'waiting' | 'entered';
  /** Work beside the slots: gradings. */
  readonly beside: boolean;
}

export interface PoolState {
  readonly engines: ReadonlyMap<string, PoolEngine>;
  /** In the order in which they were placed. */
  readonly tickets: ReadonlyMap<number, Ticket>;
}

export type PoolEvent =
  | { readonly is: 'refuse'; readonly engine: string }
  | { readonly is: 'failed' | 'silent'; readonly engine: string; readonly at: number }
  | { readonly is: 'answered'; readonly engine: string }
  /** `among`: the engines that are preferred, where one of them takes trials. */
  | {
      readonly is: 'choose';
      readonly ticket: number;
      readonly among?: readonly string[];
      readonly beside?: boolean;
    }
  | { readonly is: 'enter' | 'release'; readonly ticket: number }
  /** From time to time: whoever waits for a full engine goes where nobody is meant to be. */
  | { readonly is: 'balance' };

export type PoolDecision =
  | { readonly is: 'placed'; readonly ticket: number; readonly engine: string }
  /** No engine takes trials. */
  | { readonly is: 'nowhere'; readonly ticket: number }
  | { readonly is: 'entered'; readonly ticket: number }
  /** The trial waited for its engine, and goes to another one. */
  | {
      readonly is: 'turned_away';
      readonly ticket: number;
      readonly engine: string;
      readonly why: 'lost' | 'refused' | 'elsewhere';
    }
  /** It gets nothing new until it is back. */
  | { readonly is: 'lost'; readonly engine: string }
  | { readonly is: 'back'; readonly engine: string; readonly wasLost: boolean }
  /** What runs there ends, and runs again elsewhere. */
  | { readonly is: 'end'; readonly engine: string; readonly since: number };

interface PoolStep {
  readonly state: PoolState;
  readonly decisions: readonly PoolDecision[];
}

/** An engine that does not answer for so long is lost. */
export const LOST_AFTER_MS = 60_000;

/** All of them ready, and nobody there. */
export const newPool = (engines: readonly { name: string; slots: number }[]): PoolState => ({
  engines: new Map(
    engines.map(({ name, slots }) => [
      name,
      { name, slots, refused: false, lost: false, silentSince: undefined, failedAt: undefined },
    ]),
  ),
  tickets: new Map(),
});

const ticketsOn = ({ tickets }: PoolState, engine: string): Ticket[] =>
  [...tickets.values()].filter((ticket) => ticket.engine === engine);

/** Trials that are there; gradings are beside. */
export const activeOn = (state: PoolState, engine: string): number =>
  ticketsOn(state, engine).filter(({ stage, beside }) => stage === 'entered' && !beside).length;

export const assignedTo = (state: PoolState, engine: string, beside: boolean): number =>
  ticketsOn(state, engine).filter((ticket) => ticket.beside === beside).length;

/** It was not reached, and has not been asked again since. */
export const isAway = ({ lost, failedAt }: PoolEngine): boolean => lost || failedAt !== undefined;

export const takes = (engine: PoolEngine): boolean =>
  !engine.refused && !isAway(engine) && engine.silentSince === undefined;

export const hasRoom = (state: PoolState, engine: PoolEngine): boolean =>
  takes(engine) && (engine.slots === 0 || activeOn(state, engine.name) < engine.slots);

export function poolStep(state: PoolState, event: PoolEvent): PoolStep {
  switch (event.is) {
    case 'choose':
      return choose(state, event);
    case 'enter':
    case 'release':
      return ofTicket(state, event);
    case 'balance':
      return balance(state);
    case 'refuse':
      return settled(changed(state, event.engine, { refused: true }), event.engine, []);
    case 'answered':
      return answered(state, event.engine);
    case 'failed':
    case 'silent':
      return silent(state, event);
  }
}

const changed = (state: PoolState, name: string, to: Partial<PoolEngine>): PoolState => ({
  ...state,
  engines: new Map(state.engines).set(name, { ...state.engines.get(name)!, ...to }),
});

function withTicket(state: PoolState, id: number, ticket: Ticket | undefined): PoolState {
  const tickets = new Map(state.tickets);
  if (ticket) tickets.set(id, ticket);
  else tickets.delete(id);
  return { ...state, tickets };
}

/** The engine with the fewest trials in proportion to its slots; among equals the first of the list. */
function choose(state: PoolState, event: Extract<PoolEvent, { is: 'choose' }>): PoolStep {
  const { ticket, among, beside = false } = event;
  const ready = [...state.engines.values()].filter(takes);
  const preferred = among ? ready.filter(({ name }) => among.includes(name)) : [];
  const load = ({ name, slots }: PoolEngine) => {
    const assigned = assignedTo(state, name, beside);
    return slots > 0 && !beside ? assigned / slots : assigned;
  };
  const [best] = (preferred.length > 0 ? preferred : ready)
    .map((engine) => ({ engine: engine.name, load: load(engine) }))
    .toSorted((a, b) => a.load - b.load);
  if (!best) return { state, decisions: [{ is: 'nowhere', ticket }] };
  const { engine } = best;
  return {
    state: withTicket(state, ticket, { engine, stage: 'placed', beside }),
    decisions: [{ is: 'placed', ticket, engine }],
  };
}

function ofTicket(
  state: PoolState,
  { is, ticket: id }: { is: 'enter' | 'release'; ticket: number },
): PoolStep {
  const ticket = state.tickets.get(id);
  if (!ticket || (is === 'enter' && ticket.stage !== 'placed')) return { state, decisions: [] };
  const next: Ticket | undefined = is === 'enter' ? { ...ticket, stage: 'waiting' } : undefined;
  return settled(withTicket(state, id, next), ticket.engine, []);
}

function silent(
  state: PoolState,
  { is, engine: name, at }: Extract<PoolEvent, { is: 'failed' | 'silent' }>,
): PoolStep {
  const engine = state.engines.get(name)!;
  const since = engine.silentSince ?? at;
  const minute = at - since >= LOST_AFTER_MS;
  const next: PoolEngine = {
    ...engine,
    silentSince: since,
    failedAt: is === 'failed' ? at : engine.failedAt,
    lost: engine.lost || minute,
  };
  const decisions: PoolDecision[] = [];
  if (!isAway(engine) && isAway(next)) decisions.push({ is: 'lost', engine: name });
  if (!engine.lost && minute) decisions.push({ is: 'end', engine: name, since });
  return settled(changed(state, name, next), name, decisions);
}

function answered(state: PoolState, name: string): PoolStep {
  const engine = state.engines.get(name)!;
  const back: PoolDecision[] = isAway(engine) ? [{ is: 'back', engine: name, wasLost: engine.lost }] : [];
  const next = changed(state, name, { silentSince: undefined, failedAt: undefined, lost: false });
  return settled(next, name, back);
}

/** Trials that wait for a full engine go where there is room that no trial is meant for, the longest wait first. */
function balance(state: PoolState): PoolStep {
  const waiting = [...state.tickets].filter(([, { stage }]) => stage === 'waiting');
  const step = { state, decisions: [] };
  if (waiting.length === 0) return step;
  const free = [...state.engines.values()]
    .filter(takes)
    .map(({ name, slots }) =>
      slots === 0 ? waiting.length : Math.max(0, slots - assignedTo(state, name, false)),
    )
    .reduce((sum, room) => sum + room, 0);
  const moved = waiting.slice(0, free).map(([id]) => id);
  return turnAway(step, moved, 'elsewhere');
}

/** Whoever waits for the engine enters where there is room, and goes away where nothing is taken any more. */
function settled(state: PoolState, name: string, before: readonly PoolDecision[]): PoolStep {
  const engine = state.engines.get(name)!;
  const waiting = [...state.tickets].filter(([, one]) => one.engine === name && one.stage === 'waiting');
  const ids = waiting.map(([id]) => id);
  const step = { state, decisions: before };
  if (waiting.length === 0) return step;
  if (engine.refused) return turnAway(step, ids, 'refused');
  if (isAway(engine)) return turnAway(step, ids, 'lost');
  if (!takes(engine)) return step;
  let free = engine.slots === 0 ? Number.POSITIVE_INFINITY : engine.slots - activeOn(state, name);
  const entering = waiting.filter(([, { beside }]) => beside || free-- > 0);
  const tickets = new Map(state.tickets);
  for (const [id, ticket] of entering) tickets.set(id, { ...ticket, stage: 'entered' });
  const entered = entering.map(([id]) => ({ is: 'entered' as const, ticket: id }));
  return { state: { ...state, tickets }, decisions: [...before, ...entered] };
}

function turnAway(
  { state, decisions }: PoolStep,
  ids: readonly number[],
  why: 'lost' | 'refused' | 'elsewhere',
): PoolStep {
  const tickets = new Map(state.tickets);
  for (const id of ids) tickets.delete(id);
  const away = ids.map((ticket) => {
    const { engine } = state.tickets.get(ticket)!;
    return { is: 'turned_away' as const, ticket, engine, why };
  });
  return { state: { ...state, tickets }, decisions: [...decisions, ...away] };
}
