// What the pool of engines decides, for any order of what may happen to it.
import { describe, expect, test } from 'vitest';
import {
  activeOn,
  hasRoom,
  isAway,
  LOST_AFTER_MS,
  newPool,
  type PoolDecision,
  type PoolEngine,
  type PoolEvent,
  type PoolState,
  poolStep,
  takes,
} from '../../../../src/environment/places/poolState.ts';
import fc from '../../../support/property.ts';

const NAMES = ['a', 'b', 'c'];

/** Engines by their slots. */
const pool = (slots: Record<string, number>): PoolState =>
  newPool(Object.entries(slots).map(([name, many]) => ({ name, slots: many })));

/** Applies events one after the other; keeps all decisions. */
function stepped(events: readonly PoolEvent[], from: PoolState) {
  let state = from;
  const decisions: PoolDecision[] = [];
  for (const event of events) {
    const step = poolStep(state, event);
    state = step.state;
    decisions.push(...step.decisions);
  }
  return { state, decisions };
}
const choose = (ticket: number, among?: string[]): PoolEvent => ({
  is: 'choose',
  ticket,
  ...(among && { among }),
});
const enter = (ticket: number): PoolEvent => ({ is: 'enter', ticket });
const release = (ticket: number): PoolEvent => ({ is: 'release', ticket });
const phaseOf = (engine: PoolEngine): string => {
  if (engine.refused) return 'refused';
  if (isAway(engine)) return 'lost';
  return takes(engine) ? 'ready' : 'silent';
};
const phases = (state: PoolState) =>
  Object.fromEntries([...state.engines.values()].map((engine) => [engine.name, phaseOf(engine)]));

describe('an engine that does not answer', () => {
  const silent = (at: number): PoolEvent => ({ is: 'silent', engine: 'a', at });
  const answered: PoolEvent = { is: 'answered', engine: 'a' };

  test('for twelve seconds ends nothing: it gets nothing new meanwhile, and takes trials again when it answers', () => {
    const quiet = stepped([choose(1), enter(1), silent(0), silent(5000), silent(12_000)], pool({ a: 2 }));
    expect(phases(quiet.state)).toEqual({ a: 'silent' });
    expect(quiet.decisions.map(({ is }) => is)).toEqual(['placed', 'entered']);
    expect(stepped([choose(2)], quiet.state).decisions).toEqual([{ is: 'nowhere', ticket: 2 }]);
    const back = stepped([answered, choose(2)], quiet.state);
    expect(back.decisions).toEqual([{ is: 'placed', ticket: 2, engine: 'a' }]);
  });

  test('for a minute is lost: what runs there ends, with since when it was silent', () => {
    const { state, decisions } = stepped([silent(1000), silent(1000 + LOST_AFTER_MS - 1)], pool({ a: 1 }));
    expect(decisions).toEqual([]);
    const lost = stepped([silent(1000 + LOST_AFTER_MS)], state);
    expect(lost.decisions).toEqual([
      { is: 'lost', engine: 'a' },
      { is: 'end', engine: 'a', since: 1000 },
    ]);
    expect(phases(lost.state)).toEqual({ a: 'lost' });
    expect(stepped([silent(1000 + 2 * LOST_AFTER_MS)], lost.state).decisions).toEqual([]);
    const back = stepped([answered], lost.state);
    expect(back.decisions).toEqual([{ is: 'back', engine: 'a', wasLost: true }]);
    expect(phases(back.state)).toEqual({ a: 'ready' });
  });

  test('the minute begins anew when it answers in between', () => {
    const { decisions } = stepped([silent(0), silent(50_000), answered, silent(61_000)], pool({ a: 1 }));
    expect(decisions).toEqual([]);
  });

  test('work that failed there ends nothing else before the minute, and sends on who waits for it', () => {
    const failed: PoolEvent = { is: 'failed', engine: 'a', at: 0 };
    const events = [choose(1), enter(1), choose(2), enter(2), failed];
    const { state, decisions } = stepped(events, pool({ a: 1 }));
    expect(decisions.slice(3)).toEqual([
      { is: 'lost', engine: 'a' },
      { is: 'turned_away', ticket: 2, engine: 'a', why: 'lost' },
    ]);
    expect(activeOn(state, 'a')).toBe(1);
    expect(stepped([silent(LOST_AFTER_MS)], state).decisions).toEqual([{ is: 'end', engine: 'a', since: 0 }]);
  });
});

describe('several engines', () => {
  test('who waits for a full engine goes to one that has become empty, when that is looked at', () => {
    const two = stepped([choose(1, ['a']), enter(1), choose(2, ['a']), enter(2)], pool({ a: 1, b: 1 }));
    const moved: PoolDecision = { is: 'turned_away', ticket: 2, engine: 'a', why: 'elsewhere' };
    expect(stepped([{ is: 'balance' }], two.state).decisions).toEqual([moved]);
    const meant = stepped([choose(3, ['b']), { is: 'balance' }], two.state);
    expect(meant.decisions).toEqual([{ is: 'placed', ticket: 3, engine: 'b' }]);
    expect(stepped([release(3), { is: 'balance' }], meant.state).decisions).toEqual([moved]);
  });

  test('one that is back takes those who wait longest for a full one, as many as it has room for', () => {
    const lost: PoolEvent = { is: 'failed', engine: 'b', at: 0 };
    const trials = [1, 2, 3, 4].flatMap((id) => [choose(id), enter(id)]);
    const full = stepped([lost, ...trials], pool({ a: 1, b: 2 }));
    const back = stepped([{ is: 'answered', engine: 'b' }], full.state);
    const { decisions } = stepped([{ is: 'balance' }], back.state);
    expect(decisions).toEqual(
      [2, 3].map((ticket) => ({ is: 'turned_away', ticket, engine: 'a', why: 'elsewhere' })),
    );
  });

  test('one that is refused gets nothing, what runs there goes on, and who waits for it goes elsewhere', () => {
    const full = stepped(
      [choose(1, ['a']), enter(1), choose(2, ['a']), enter(2), { is: 'refuse', engine: 'a' }],
      pool({ a: 1, b: 1 }),
    );
    expect(full.decisions.at(-1)).toEqual({ is: 'turned_away', ticket: 2, engine: 'a', why: 'refused' });
    expect(phases(full.state)).toEqual({ a: 'refused', b: 'ready' });
    const free = stepped([release(1), choose(3, ['a'])], full.state);
    expect(free.decisions).toEqual([{ is: 'placed', ticket: 3, engine: 'b' }]);
    const again = stepped([{ is: 'answered', engine: 'a' }], free.state);
    expect(phases(again.state)).toEqual({ a: 'refused', b: 'ready' });
  });

  test('gradings take no slot, and wait for none', () => {
    const beside: PoolEvent = { is: 'choose', ticket: 2, beside: true };
    const { state, decisions } = stepped(
      [choose(1), enter(1), beside, enter(2), choose(3), enter(3)],
      pool({ a: 1 }),
    );
    expect(decisions.filter(({ is }) => is === 'entered')).toEqual([
      { is: 'entered', ticket: 1 },
      { is: 'entered', ticket: 2 },
    ]);
    expect(activeOn(state, 'a')).toBe(1);
  });
});

const anyEngine = fc.constantFrom(...NAMES);
const anyTicket = fc.integer({ min: 1, max: 12 });
/** Steps of time, so that a minute of silence happens. */
const anyEvent: fc.Arbitrary<PoolEvent> = fc.oneof(
  fc.record({ is: fc.constantFrom('refuse' as const, 'answered' as const), engine: anyEngine }),
  fc.record({
    is: fc.constantFrom('failed' as const, 'silent' as const),
    engine: anyEngine,
    at: fc.integer({ min: 0, max: 200_000 }),
  }),
  fc.record({ is: fc.constant('choose' as const), ticket: anyTicket, among: fc.subarray(NAMES) }),
  fc.record({ is: fc.constantFrom('enter' as const, 'release' as const), ticket: anyTicket }),
);

const anyPool = fc
  .tuple(...NAMES.map(() => fc.integer({ min: 0, max: 3 })))
  .map((slots) => newPool(NAMES.map((name, i) => ({ name, slots: slots[i]! }))));

/** A ticket is chosen once. */
function run(
  from: PoolState,
  events: readonly PoolEvent[],
  look: (before: PoolState, event: PoolEvent, step: ReturnType<typeof poolStep>) => void,
) {
  let state = from;
  for (const event of events) {
    if (event.is === 'choose' && state.tickets.has(event.ticket)) continue;
    const step = poolStep(state, event);
    look(state, event, step);
    state = step.state;
  }
  return state;
}

describe('whatever happens in whatever order', () => {
  const events = fc.array(anyEvent, { maxLength: 80 });

  test('no trial is placed on, or enters, an engine that is refused, silent or lost', () => {
    fc.assert(
      fc.property(anyPool, events, (from, all) => {
        run(from, all, (before, _, { state, decisions }) => {
          for (const decision of decisions) {
            if (decision.is === 'placed') expect(takes(before.engines.get(decision.engine)!)).toBe(true);
            if (decision.is !== 'entered') continue;
            expect(phaseOf(state.engines.get(state.tickets.get(decision.ticket)!.engine)!)).toBe('ready');
          }
        });
      }),
      { numRuns: 500 },
    );
  });

  test('slots are never exceeded by a trial that enters', () => {
    fc.assert(
      fc.property(anyPool, events, (from, all) => {
        run(from, all, (_, __, { state, decisions }) => {
          for (const decision of decisions) {
            if (decision.is !== 'entered') continue;
            const { slots, name } = state.engines.get(state.tickets.get(decision.ticket)!.engine)!;
            if (slots > 0) expect(activeOn(state, name)).toBeLessThanOrEqual(slots);
          }
        });
      }),
      { numRuns: 500 },
    );
  });

  test('nobody waits at an engine that has room, nor at one that takes nothing more', () => {
    fc.assert(
      fc.property(anyPool, events, (from, all) => {
        run(from, all, (_, __, { state }) => {
          for (const { stage, engine: name } of state.tickets.values()) {
            if (stage !== 'waiting') continue;
            const engine = state.engines.get(name)!;
            expect(hasRoom(state, engine)).toBe(false);
            expect(['ready', 'silent']).toContain(phaseOf(engine));
          }
        });
      }),
      { numRuns: 500 },
    );
  });

  test('nobody waits for a full engine while another has room that nobody is meant for, once that was looked at', () => {
    fc.assert(
      fc.property(anyPool, events, (from, all) => {
        const { state } = poolStep(
          run(from, all, () => {}),
          { is: 'balance' },
        );
        const tickets = [...state.tickets.values()];
        const meant = (name: string) => tickets.filter((one) => one.engine === name && !one.beside).length;
        const idle = [...state.engines.values()].filter(
          (engine) => takes(engine) && (engine.slots === 0 || meant(engine.name) < engine.slots),
        );
        if (idle.length > 0) expect(tickets.filter(({ stage }) => stage === 'waiting')).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('every trial comes through while one engine stays ready: who is turned away chooses again', () => {
    const anyChange = anyEvent.filter(({ is }) => !['choose', 'enter', 'release'].includes(is));
    fc.assert(
      fc.property(
        fc.array(anyChange, { maxLength: 60 }),
        fc.integer({ min: 1, max: 30 }),
        (changes, trials) => {
          expect(workThrough(changes, trials)).toBe(trials);
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** Trials choose, enter, and end in the order in which they entered, while the engines change. Returns how many ended. */
function workThrough(changes: readonly PoolEvent[], trials: number): number {
  let state = pool({ home: 1, a: 1, b: 2, c: 0 });
  const inside: number[] = [];
  const toPlace = Array.from({ length: trials }, (_, i) => i + 1);
  const open = [...changes];
  let done = 0;
  const apply = (event: PoolEvent) => {
    const step = poolStep(state, event);
    state = step.state;
    for (const decision of step.decisions) {
      if (decision.is === 'entered') inside.push(decision.ticket);
      if (decision.is === 'turned_away') toPlace.push(decision.ticket);
      if (decision.is === 'placed') apply(enter(decision.ticket));
    }
  };
  for (let turn = 0; turn < 50 * (trials + changes.length) && done < trials; turn++) {
    const change = open.shift();
    if (change) apply(change);
    const next = toPlace.shift();
    if (next !== undefined) apply(choose(next));
    const ended = turn % 2 === 1 ? inside.shift() : undefined;
    if (ended !== undefined) {
      done += 1;
      apply(release(ended));
    }
  }
  return done;
}
