// Builds the images of the demo dataset and of the tests; a second run finds them by content hash and does nothing.
//   node scripts/buildDemoImages.ts [--tests] [--rebuild]
// Without an option: the base, the test image and one image per demo instance. --tests: base and test image only.
import { parseArgs } from 'node:util';
import { BASE_IMAGE, ensureBase } from '../src/demo/baseImage.ts';
import { buildDemoImages } from '../src/demo/buildDemoImages.ts';
import { ensureTestImage, TEST_IMAGE } from './demo/testImage.ts';

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

try {
  await main();
} catch (error) {
  say(`Building the images failed. ${(error as Error).message}`);
  process.exitCode = 2;
}
