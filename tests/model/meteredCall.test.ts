// The life of a call that costs money, against funds and rows that are plain lists: reserve, begin, end, lose, count.
import { expect, test } from 'vitest';
import { createTally, type MeteredCall, meteredCall } from '../../src/model/meteredCall.ts';
import { callRecord } from './harness.ts';

const nobody = () => {};
const begun = (tried = 0) => ({ try: tried, modelAsked: 'm', startedAt: 0, estimateNano: 40 });

/** Funds of which `grant` gives the next share. */
function bench() {
  const said: string[] = [];
  const settle = (cost: number | null) => void said.push(`settled ${cost}`);
  const tally = createTally();
  const turn = Promise.withResolvers<void>();
  const call: MeteredCall = meteredCall({
    funds: {
      async reserve(estimate, _signal, waits) {
        waits();
        await turn.promise;
        said.push(`reserved ${estimate}`);
        return settle;
      },
      reserveNow(estimate) {
        said.push(`taken ${estimate}`);
        return settle;
      },
    },
    tally,
    to: {
      began: (row) => void said.push(`row ${row.try}`),
      ended: (row) => void said.push(`${row.state} ${row.try}`),
    },
    lost: (tried) => void said.push(`lost ${tried}`),
  });
  return { call, tally, said, grant: turn.resolve };
}

test('a share is waited for, which is said; then comes the row, then the end of both', async () => {
  const { call, tally, said, grant } = bench();
  const wanted = call.wanted(40, undefined, () => void said.push('waits'));
  expect(said).toEqual(['waits']);
  expect(call.isOver()).toBe(false);
  grant();
  await wanted;
  void call.began(begun());
  expect(call.isOut()).toBe(true);
  call.ended(callRecord({ state: 'failed', costNano: 5 }));
  // A model that does not ask is paid all the same: here for its second try.
  void call.began(begun(1));
  call.ended(callRecord({ try: 1, costNano: 31 }));
  expect(said).toEqual([
    ...['waits', 'reserved 40', 'row 0', 'failed 0', 'settled 5'],
    ...['taken 40', 'row 1', 'ok 1', 'settled 31'],
  ]);
  expect(call.isOver()).toBe(true);
  expect(tally).toMatchObject({ spentNano: 36, costNano: 36 });
});

test('a call whose attempt ends first is lost; an answer that still comes gets into its row, and nothing is counted', () => {
  const { call, tally, said } = bench();
  void call.began(begun());
  call.lose();
  expect(said).toEqual(['taken 40', 'row 0', 'lost 0', 'settled null']);
  call.ended(callRecord({ costNano: 7 }));
  expect(said.slice(4)).toEqual(['ok 0', 'settled 7']);
  expect(tally).toMatchObject({ spentNano: 0, costNano: 0 });
});

test('a share that was not used is given back: at the end, where it comes after the end, and where another is asked for', async () => {
  const granted = bench();
  granted.grant();
  await granted.call.wanted(40, undefined, nobody);
  granted.call.lose();
  const late = bench();
  const wanted = late.call.wanted(40, undefined, nobody);
  late.call.lose();
  late.grant();
  await wanted;
  for (const { said } of [granted, late]) expect(said).toEqual(['reserved 40', 'settled 0']);
  const twice = bench();
  twice.grant();
  await twice.call.wanted(40, undefined, nobody);
  await twice.call.wanted(30, undefined, nobody);
  expect(twice.said).toEqual(['reserved 40', 'settled 0', 'reserved 30']);
});

test.each([
  ['an answer of unknown cost as its estimate', 'ok', 40],
  ['a failed try of unknown cost as nothing', 'failed', 0],
  ['an answer that got lost as nothing, though it may have been billed', 'aborted', 0],
] as const)('a limit counts %s, and the cost is unknown', (_what, state, spent) => {
  const { call, tally, said } = bench();
  void call.began(begun());
  call.ended(callRecord({ state, costNano: null }));
  expect(tally).toMatchObject({ spentNano: spent, costNano: null });
  // The budget counts what may have been billed.
  expect(said.at(-1)).toBe('settled null');
});

test('what ends has begun', () => {
  expect(() => bench().call.ended(callRecord({}))).toThrow('model call 0 ended without having begun');
});
