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
  for (const piece of ['a', 'b', 'c']) answer.sink.data(Buffer.from(piece));
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
  answer.sink.data(Buffer.from('a'));
  const late = slow(9);
  answer.read(late);
  answer.finish({ kind: 'cut' });
  const latest = slow(9);
  answer.read(latest).more();
  expect([gone.got, late.got, latest.got]).toEqual([[], ['200', 'a', 'cut'], ['200', 'a', 'cut']]);
});
