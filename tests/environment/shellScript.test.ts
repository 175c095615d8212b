// Scripts come whole from beside their modules: shared parts in their place, nothing in them that only readers need.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { shellScript } from '../../src/environment/shellScript.ts';

const ENVIRONMENT = join(import.meta.dirname, '..', '..', 'src', 'environment');
const scripts = readdirSync(ENVIRONMENT, { recursive: true, encoding: 'utf8' }).filter((f) =>
  f.endsWith('.sh'),
);

test('a shared part stands where it is named, and whole lines of comment stay at home', () => {
  const folder = mkdtempSync(join(tmpdir(), 'swebatch-script-'));
  try {
    writeFileSync(join(folder, 'part.sh'), '#!/bin/sh\n# A function.\nhello() { echo "hello # $1"; }\n');
    writeFileSync(join(folder, 'whole.sh'), '#!/bin/sh\n. ./part.sh\n  # Says it.\nhello "$1" # once\n');
    const script = shellScript('whole.sh', pathToFileURL(join(folder, 'module.ts')).href);
    expect(script).toBe('hello() { echo "hello # $1"; }\nhello "$1" # once\n');
    expect(spawnSync('sh', ['-c', script, 'sh', 'you'], { encoding: 'utf8' }).stdout).toBe('hello # you\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.each(scripts)('%s needs no other file and fits into an argument', (path) => {
  const script = shellScript(basename(path), pathToFileURL(join(ENVIRONMENT, path)).href);
  expect(script).not.toMatch(/^\s*(#|\. \.\/)/m);
  expect(Buffer.byteLength(script)).toBeLessThan(131_071);
  expect(spawnSync('bash', ['-n', '-c', script], { encoding: 'utf8' })).toMatchObject({
    status: 0,
    stderr: '',
  });
});
