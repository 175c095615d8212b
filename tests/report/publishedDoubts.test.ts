// The second denominator: a score without instances that others found to be wrong.
import { expect, test } from 'vitest';
import doubts from '../../src/report/measure/publishedDoubts.json' with { type: 'json' };
import { doubtedScores } from '../../src/report/measure/summary.ts';

const trial = (instanceId: string, resolved: boolean) => ({ instanceId, epoch: 1, valid: true, resolved });
const [gold, text] = doubts.map(({ ids }) => ids[0]!);

test('a run without such instances has no second score', () => {
  expect(doubtedScores([trial('django__django-1', true)], 1)).toEqual([]);
});

test('each list has its score with its label, and both together have one', () => {
  const trials = [trial(gold!, false), trial(text!, false), trial('instance_a__a-1', true)];
  const scores = doubtedScores(trials, 1);
  expect(scores.map(({ ids, resolvedWithout: { x, n } }) => [ids, x, n])).toEqual([
    [[gold], 1, 2],
    [[text], 1, 2],
    [[gold, text], 1, 1],
  ]);
  expect(scores[0]!.label).toContain('gold patch fails');
});

test('the lists are those of the audit: 3 and 109, each id once', () => {
  expect(doubts.map(({ ids }) => new Set(ids).size)).toEqual([3, 109]);
});
