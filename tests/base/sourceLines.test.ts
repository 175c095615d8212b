// A stack of the published program names the lines of its sources.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';
import { REPO, tempDir } from '../support/cli.ts';

const HOOK = pathToFileURL(join(REPO, 'src/base/text/sourceLines.ts')).href;

/** What the stack of an error says that comes from the third line of a source. */
async function stackOf(sourcemap: boolean): Promise<string> {
  const dir = tempDir();
  const source = join(dir, 'fails.ts');
  writeFileSync(
    source,
    '// One line above,\nexport function fail(): never {\n  throw new Error("as planned");\n}\n',
  );
  const build = await rolldown({ input: source });
  await build.write({ dir, format: 'esm', sourcemap });
  await build.close();
  const script = `import { stackOf } from '${HOOK}';
    const { fail } = await import('${pathToFileURL(join(dir, 'fails.js')).href}');
    try { fail(); } catch (error) { console.log(stackOf(error)); }`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
}

test('the line of the source, where a map lies beside the bundle', async () => {
  const stack = await stackOf(true);
  expect(stack).toContain('Error: as planned\n    at fail (file://');
  expect(stack).toMatch(/fails\.ts:3:9\)/);
});

test('the line of the bundle, where none does', async () => {
  expect(await stackOf(false)).toMatch(/fails\.js:\d+:\d+\)/);
});
