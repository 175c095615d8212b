// Makes a machine ready: the project's packages, a Docker engine, and the images of the demo and of the tests.
//   node scripts/setup.mjs                  packages and engine
//   node scripts/setup.mjs --docker-only    engine only
//   node scripts/setup.mjs --images         packages, engine, all images
//   node scripts/setup.mjs --for-tests      the same and what tests use beside it; goes on without an engine
// Plain JavaScript without any package: it has to run on the Node 20 of a fresh machine, before `npm ci`.
import { setUp } from './setup/steps.mjs';

const known = ['--docker-only', '--images', '--for-tests'];
const options = process.argv.slice(2);
const unknown = options.filter((option) => !known.includes(option));

if (unknown.length > 0) {
  process.stderr.write(`setup: unknown option ${unknown.join(' ')}; there are ${known.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const forTests = options.includes('--for-tests');
  const images = options.includes('--images') || forTests;
  process.exitCode = await setUp({ packages: !options.includes('--docker-only'), images, forTests });
}
