// Patches written without git: git must apply them and get the second tree, byte for byte.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { quotePath, writePatch } from '../../../src/environment/patch/gitPatch.ts';
import fc from '../../support/property.ts';

const hasGit = (() => {
  try {
    execFileSync('git', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();
const root = mkdtempSync(join(tmpdir(), 'swebatch-gitpatch-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The content of `path` after git applied the patch to `before`; undefined when the file is gone. */
async function applied(
  path: string,
  before: Buffer | undefined,
  after: Buffer | undefined,
): Promise<Buffer | undefined> {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(dirname(join(root, path)), { recursive: true });
  if (before) writeFileSync(join(root, path), before);
  const version = (content: Buffer | undefined) => (content ? { mode: '100644', content } : undefined);
  const patch = await writePatch([{ path, before: version(before), after: version(after) }]);
  if (patch.length === 0) return before;
  execFileSync('git', ['apply', '--whitespace=nowarn', '-'], {
    cwd: root,
    input: patch,
    env: { PATH: process.env.PATH ?? '', GIT_CEILING_DIRECTORIES: tmpdir(), HOME: root },
  });
  try {
    return readFileSync(join(root, path));
  } catch {
    return undefined;
  }
}

describe.skipIf(!hasGit)('writePatch', () => {
  const line = fc.constantFrom(
    'a\n',
    'b\n',
    '\n',
    ' \n',
    '\r\n',
    'é\n',
    '+x\n',
    '-y\n',
    '@@ -1 +1 @@\n',
    '\\\n',
  );
  const content = fc
    .tuple(fc.array(line, { maxLength: 30 }), fc.constantFrom('', 'no newline', '\r'))
    .map(([lines, end]) => Buffer.from(lines.join('') + end));

  test('any text to any text', async () => {
    await fc.assert(
      fc.asyncProperty(content, content, async (before, after) => {
        expect((await applied('f', before, after))?.equals(after)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test('any bytes to any bytes [M-69]', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 400 }),
        fc.uint8Array({ minLength: 1, maxLength: 400 }),
        async (a, b) => {
          const before = Buffer.from([0, ...a]);
          expect((await applied('f', before, Buffer.from(b)))?.equals(Buffer.from(b))).toBe(true);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('creation and deletion, with and without content', async () => {
    for (const body of ['', 'x', 'x\n', 'x\ny\n']) {
      expect((await applied('d/f', undefined, Buffer.from(body)))?.toString()).toBe(body);
      expect(await applied('d/f', Buffer.from(body), undefined)).toBeUndefined();
    }
  });

  test('thousands of changed lines', async () => {
    const before = Buffer.from(Array.from({ length: 5000 }, (_, i) => `line ${i}\n`).join(''));
    const after = Buffer.from(
      Array.from({ length: 5000 }, (_, i) => `${i % 2 ? 'line' : 'LINE'} ${i}\n`).join(''),
    );
    expect((await applied('f', before, after))?.equals(after)).toBe(true);
  });

  test.each(['a b', 'tab\there', 'new\nline', '"q"', 'back\\slash', 'ünï😀', '-dash', 'a/b c/d'])(
    'the name %j',
    async (path) => {
      expect((await applied(path, Buffer.from('1\n'), Buffer.from('2\n')))?.toString()).toBe('2\n');
    },
  );

  test('mode and content of one file', async () => {
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root);
    writeFileSync(join(root, 'f'), 'a\n');
    chmodSync(join(root, 'f'), 0o644);
    const patch = await writePatch([
      {
        path: 'f',
        before: { mode: '100644', content: Buffer.from('a\n') },
        after: { mode: '100755', content: Buffer.from('b\n') },
      },
    ]);
    expect(patch.toString()).toContain('old mode 100644\nnew mode 100755\n');
    execFileSync('git', ['apply', '-'], {
      cwd: root,
      input: patch,
      env: { PATH: process.env.PATH ?? '', GIT_CEILING_DIRECTORIES: tmpdir() },
    });
    expect(readFileSync(join(root, 'f'), 'utf8')).toBe('b\n');
  });
});

test('names are quoted as git quotes them', () => {
  expect(quotePath('a/', 'plain')).toBe('a/plain');
  expect(quotePath('a/', 'sp ace')).toBe('a/sp ace');
  expect(quotePath('b/', 'é"\\\n\t')).toBe('"b/\\303\\251\\"\\\\\\n\\t"');
});
