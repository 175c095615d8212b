// One answer and those who read it: the slow, the late and the one that went away.
import { expect, test } from 'vitest';
import { type AnswerOutcome, createAnswer, type Reader } from '../../../src/agent/gateway/answer.ts';

function slow(takes: number): Reader & { got: string[] } {
  const got: string[] = [];
  let left = takes;
  return {
    got,
    head: ({ status }) => void got.push(String(status)),
    data(bytes) {
      got.push(Buffer.from(bytes).toString());
      left -= 1;
      return left > 0;
    },
    end: ({ kind }: AnswerOutcome) => void got.push(kind),
  };
}

test('a reader that has no room gets nothing more until it asks, and the end comes last', () => {
  const answer = createAnswer();
  const reader = slow(1);
  const reading = answer.read(reader);
  answer.sink.head(200, {});
  for (const piece of ['a', 'b', 'c']) void answer.sink.data(Buffer.from(piece));
  answer.finish({ kind: 'whole' });
  expect(reader.got).toEqual(['200', 'a']);
  const told = [];
  for (let asked = 0; asked < 4; asked++) {
    reading.more();
    told.push(reader.got.at(-1));
  }
  // It says again that it has no room after each piece; the end needs none.
  expect(told).toEqual(['b', 'whole', 'whole', 'whole']);
  expect(reader.got).toEqual(['200', 'a', 'b', 'c', 'whole']);
});

test('who comes late gets all of it, and who has left gets nothing', () => {
  const answer = createAnswer();
  const gone = slow(9);
  answer.read(gone).leave();
  answer.sink.head(200, {});
  void answer.sink.data(Buffer.from('a'));
  const late = slow(9);
  answer.read(late);
  answer.finish({ kind: 'cut' });
  const latest = slow(9);
  answer.read(latest).more();
  expect([gone.got, late.got, latest.got]).toEqual([[], ['200', 'a', 'cut'], ['200', 'a', 'cut']]);
});

test('of a long answer the beginning is kept, and all of it passes as fast as its slowest reader takes it', async () => {
  const answer = createAnswer(2);
  const fast = slow(9);
  const other = slow(1);
  answer.read(fast);
  const reading = answer.read(other);
  answer.sink.head(200, {});
  expect(answer.sink.data(Buffer.from('a'))).toBe(undefined);
  expect(answer.isKept()).toBe(true);
  let wanted = 0;
  void answer.sink.data(Buffer.from('bb'))!.then(() => (wanted += 1));
  await Promise.resolve();
  expect([answer.isKept(), wanted, fast.got]).toEqual([false, 0, ['200', 'a', 'bb']]);
  reading.more();
  await Promise.resolve();
  expect([wanted, other.got]).toEqual([1, ['200', 'a', 'bb']]);
  // Who stands still no longer holds the others up when it has left.
  void answer.sink.data(Buffer.from('c'))!.then(() => (wanted += 1));
  reading.leave();
  await Promise.resolve();
  expect(wanted).toBe(2);
  answer.finish({ kind: 'whole' });
  expect(fast.got).toEqual(['200', 'a', 'bb', 'c', 'whole']);
  expect(Buffer.from(answer.bytes()).toString()).toBe('a');
});

test('a long answer goes on for nobody, and is nowhere kept', () => {
  const answer = createAnswer(1);
  const gone = slow(9);
  answer.read(gone).leave();
  answer.sink.head(200, {});
  expect(answer.sink.data(Buffer.from('aa'))).toBe(undefined);
  expect(answer.bytes()).toHaveLength(0);
});
