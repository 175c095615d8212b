// The rules that queries and views share are said once in TypeScript; a view in the database of a user says the same.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COUNTED_CLASSES } from '../../src/outcome.ts';
import { costUnknown } from '../../src/store/records/modelCalls.ts';
import { IS_RESULT, newestVerdict } from '../../src/store/records/trials.ts';
import { freshStore } from './storeFixtures.ts';

const SRC = join(import.meta.dirname, '..', '..', 'src');
const plain = (sql: string): string =>
  sql.replaceAll(/\s+/g, ' ').replaceAll('( ', '(').replaceAll(' )', ')');

const view = (name: string): string => {
  const found = freshStore().prepare('SELECT sql FROM sqlite_master WHERE name = ?').pluck().get(name);
  return plain(found as string);
};

test('the verdict that counts is the one of the view trial_results', () => {
  expect(view('trial_results')).toContain(`LEFT JOIN evaluations e ON e.id = ${newestVerdict('f')}`);
});

test('a call of unknown cost is the one of the view attempt_costs', () => {
  expect(view('attempt_costs')).toContain(`sum(${costUnknown('c').replaceAll('c.', '')}) AS unknown_calls`);
});

test('the classes that are a result stand in outcome.ts alone, and so does each rule', () => {
  expect(IS_RESULT).toBe("IN ('agent', 'limit', 'model')");
  expect([...COUNTED_CLASSES]).toEqual(['agent', 'limit', 'model']);
  const texts = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && file !== 'outcome.ts')
    .map((file) => readFileSync(join(SRC, file), 'utf8'));
  const said = (text: string) => texts.filter((one) => one.includes(text)).length;
  expect(said("'agent', 'limit', 'model'")).toBe(0);
  expect(said('SELECT max(v.id) FROM evaluations')).toBe(1);
});
