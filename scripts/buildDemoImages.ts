// Builds the images of the demo dataset and of the tests; a second run finds them by content hash and does nothing.
//   node scripts/buildDemoImages.ts [--tests] [--rebuild]
// Without an option: the base, the test image and one image per demo instance. --tests: base and test image only.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BASE_IMAGE, baseContent, build, ensureBase, imageContent } from '../src/demo/baseImage.ts';
import { buildDemoImages } from '../src/demo/demoDataset.ts';

const { values } = parseArgs({
  options: { tests: { type: 'boolean', default: false }, rebuild: { type: 'boolean', default: false } },
});

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

async function main(): Promise<void> {
  const started = Date.now();
  say(`${BASE_IMAGE}: ${await ensureBase(say, values.rebuild)}`);
  say(`${TEST_IMAGE}: ${await ensureTestImage(values.rebuild)}`);
  if (!values.tests) {
    const { built, images } = await buildDemoImages(say, values.rebuild);
    say(`demo instances: ${built.length} of ${images} images built, the others were there`);
  }
  say(`images ready in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

// The small image of the environment tests: a git repository in /testbed with a few commits, bash, coreutils, git, Python, Node.
const TEST_IMAGE = 'swebatch-test/base:1';

/** Fixed identity and dates, so that the commit ids are the same wherever the image is built. */
const SCRIPT = `set -eu
mkdir -p /testbed/src && cd /testbed
git init -q -b main
commit() {
  export GIT_AUTHOR_DATE="2024-05-0$1T12:00:00+0000" GIT_COMMITTER_DATE="2024-05-0$1T12:00:00+0000"
  git add -A
  git -c user.name='Test Author' -c user.email=author@example.org commit -q -m "$2"
}
printf '# greet\\n\\nSays hello.\\n' > README.md
printf '*.pyc\\n__pycache__/\\nbuild/\\n' > .gitignore
commit 1 'Start'
printf 'def greet(name):\\n    return "Hello " + name\\n' > src/greet.py
commit 2 'Greet by name'
printf 'import sys\\n\\nfrom greet import greet\\n\\nprint(greet(sys.argv[1]))\\n' > src/main.py
printf 'first\\r\\nsecond\\r\\n' > src/crlf.txt
printf '\\000\\001\\002binary\\377' > src/blob.bin
commit 3 'Command line, and two awkward files'
printf '#!/bin/sh\\necho run\\n' > run.sh
chmod +x run.sh
ln -s README.md link.md
commit 4 'A script and a link'
git repack -adq
`;

const content = `${baseContent}|tests-2`;

/** Builds the image unless the one of this content is there. */
async function ensureTestImage(rebuild: boolean): Promise<'present' | 'built'> {
  if (!rebuild && imageContent(TEST_IMAGE) === content) return 'present';
  const context = mkdtempSync(join(tmpdir(), 'swebatch-test-image-'));
  try {
    writeFileSync(join(context, 'make.sh'), SCRIPT);
    const dockerfile = `FROM ${BASE_IMAGE}\nCOPY make.sh /tmp/make.sh\nRUN bash /tmp/make.sh && rm /tmp/make.sh\nWORKDIR /testbed\n`;
    await build(TEST_IMAGE, context, dockerfile, content);
    return 'built';
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  say(`Building the images failed. ${(error as Error).message}`);
  process.exitCode = 2;
}
