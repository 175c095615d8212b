// Log parsers of the user's: loaded by path, checked, and told apart when they are wrong.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findParser, loadParsers } from '../../src/grading/parsers/parserRegistry.ts';

let dir = '';
let made = 0;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-parsers-'));
  writeFileSync(
    join(dir, 'good.mjs'),
    "export const parseLog = (log, { instanceId }) => new Map([[instanceId + ' ' + log, 'PASSED']]);",
  );
  writeFileSync(join(dir, 'plain.mjs'), "export const parseLog = () => ({ a: 'FAILED' });");
  writeFileSync(join(dir, 'wrong.mjs'), 'export const parseLog = () => [1];');
  writeFileSync(join(dir, 'none.mjs'), 'export default 1;');
});
afterAll(() => rmSync(dir, { recursive: true }));
const context = { instanceId: 'i', version: '', harness: 'v5' as const };

test('a Map or a plain object is taken; the official parsers stay', async () => {
  const registry = await loadParsers({ good: './good.mjs', plain: join(dir, 'plain.mjs') }, dir);
  expect([...findParser(registry, 'good')!('log', context)]).toEqual([['i log', 'PASSED']]);
  expect([...findParser(registry, 'plain')!('', context)]).toEqual([['a', 'FAILED']]);
  expect(findParser(registry, 'parse_log_django')).toBeDefined();
});
test('what cannot be used says which and why', async () => {
  await expect(loadParsers({ x: './absent.mjs' }, dir)).rejects.toThrow(
    /grading\.parsers\.x: \.\/absent\.mjs cannot be loaded/,
  );
  await expect(loadParsers({ x: './none.mjs' }, dir)).rejects.toThrow(/does not export a function parseLog/);
  const registry = await loadParsers({ x: './wrong.mjs' }, dir);
  expect(() => findParser(registry, 'x')!('', context)).toThrow(
    /parseLog of "x" must return a Map or an object/,
  );
});

test.each<[string, RegExp]>([
  ["(log) => {\n  throw new Error('no');\n}", /^your log parser \.\/p\d\.mjs threw at line 2: no$/],
  ["() => { throw 'no'; }", /^your log parser \.\/p\d\.mjs threw: no$/],
  ['async () => new Map()', /returned a promise from parseLog: parseLog of "x" must return a Map/],
  ['() => undefined', /returned undefined from parseLog: parseLog of "x" must return a Map/],
  ["() => ({ a: 'ok' })", /a is ok, and a status is one of FAILED, PASSED, SKIPPED, ERROR, XFAIL$/],
  ["() => new Map([[1, 'PASSED']])", /1 is PASSED/],
])('a parser that is %j is told where', async (body, message) => {
  made += 1;
  writeFileSync(join(dir, `p${made}.mjs`), `export const parseLog = ${body};`);
  const registry = await loadParsers({ x: `./p${made}.mjs` }, dir);
  expect(() => findParser(registry, 'x')!('', context)).toThrow(message);
});
