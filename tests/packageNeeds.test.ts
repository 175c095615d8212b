// The check of dist finds each form of a name that an installed package would look for in vain.
import { expect, test } from 'vitest';
import * as needs from '../scripts/packageNeeds.ts';

const BROUGHT = { dependencies: { zod: '4' }, peerDependencies: { '@azure/identity': '4' } };
const { namesOf, reachedFrom } = needs;
const missingNames = (
  files: Readonly<Record<string, string>>,
  manifest: object,
  isThere = (path: string) => path in files,
) => needs.missingNames(namesOf(files), manifest, isThere);
const MAKER = "import { createRequire as made } from 'node:module';\n";

test.each([
  ['a static import', "import { x } from 'left-out';"],
  ['an import for its effect', "import 'left-out/register';"],
  ['a re-export', "export * from 'left-out';"],
  ['a lazy import', "const load = () => import('left-out');"],
  ['a lazy import by a constant', 'const NAME = `left-out`;\nawait import(NAME);'],
  ['a require', "function f() { return require('left-out'); }"],
  ['a require that was made', `${MAKER}made(import.meta.url)('left-out');`],
  ['one that has a name', `${MAKER}const load = made(import.meta.url);\nload('left-out');`],
  ['the place of a package', `${MAKER}const load = made(import.meta.url);\nload.resolve('left-out/a.js');`],
  [
    'one that has another name',
    `${MAKER}const a = made(import.meta.url), b = a.resolve;\n(0, b)('left-out');`,
  ],
  ['import.meta.resolve', "const at = import.meta.resolve('left-out');"],
  [
    'a require of a builtin',
    "process.getBuiltinModule('node:module').createRequire(import.meta.url)('left-out');",
  ],
  ['a taken part', "const { createRequire: r } = require('module');\nr('/x')('left-out');"],
  ['either of two', "await import(quick ? 'zod' : 'left-out');"],
  ['the text of a worker', "new Worker(`const x = require('left-out');`, { eval: true });"],
])('%s', (_, text) => {
  expect(missingNames({ 'a.js': text }, BROUGHT)).toEqual([
    expect.stringMatching(/^a\.js:\d names left-out.*, which package\.json does not bring/),
  ]);
});

test('a require that another file shares is one there too', () => {
  const files = {
    'runtime.js': `${MAKER}var s = made(import.meta.url);\nexport { s as r };`,
    'b.js': "import { r as e } from './runtime.js';\ne(`left-out`);",
  };
  expect(missingNames(files, BROUGHT)).toEqual([expect.stringContaining('b.js:2 names left-out')]);
});

test('what package.json brings, Node itself, and a name that only looks alike are none of them', () => {
  const text = `${MAKER}import { z } from 'zod';\nimport fs from 'fs';\nimport 'node:path';
const cloud = () => import('@azure/identity');
const load = made(import.meta.url);
load('zod/mini');
const inner = (load) => load('not a package');
const asked = { resolve: (name) => name }.resolve('left-out');
new RegExp('x'); console.log("import('left-out') is quoted", "from 'left-out' likewise");
await import(pathToFileURL(given).href);`;
  expect(missingNames({ 'a.js': text }, BROUGHT)).toEqual([]);
  expect(namesOf({ 'a.js': text }).map(({ name }) => name)).toContain('zod/mini');
});

test('a type that a declaration takes from elsewhere', () => {
  const text = "import type { a } from 'left-out';\nexport declare const b: import('other').c;";
  expect(missingNames({ 'index.d.ts': text }, BROUGHT)).toHaveLength(2);
});

test('a file beside that is not there', () => {
  const place = "new URL('./base/x.ts', import.meta.url)";
  const text = `${MAKER}import './b.js';
made(${place}.href)('../packages/c.cjs');
new Worker(new URL('./worker.js', ${place}));`;
  expect(missingNames({ 'a.js': text, 'b.js': '' }, BROUGHT)).toEqual([
    'a.js:3 names ./packages/c.cjs, which is not there',
    'a.js:4 names ./base/worker.js, which is not there',
  ]);
  expect(missingNames({ 'a.js': text, 'b.js': '' }, BROUGHT, () => true)).toEqual([]);
});

test('a name that is made in mid-run', () => {
  expect(missingNames({ 'a.js': 'await import(given);' }, BROUGHT)).toEqual([
    'a.js:1 asks for a name that is made in mid-run: import(given);',
  ]);
});

test('what a file loads, and what that loads', () => {
  const files = { 'a.js': "import './b.js';", 'b.js': "import('./c.js');", 'c.js': '', 'old.js': '' };
  expect([...reachedFrom(['a.js'], namesOf(files))]).toEqual(['a.js', 'b.js', 'c.js']);
});
