// The image that reads logs of SWE-smith, as a registry would have its base: the package of PyPI in the image of the tests.
import { spawn } from 'node:child_process';
import { LOADED } from '../../../src/suites/smith/smith.ts';
import { docker } from '../docker.ts';
import { BASE_IMAGE } from '../dockerEnvironment.ts';
import { fromPypi } from '../python/fromPypi.ts';

const IMAGE = 'swebatch-envtest/derived:swesmith-0.0.9-loaded';
/** For the Python of the image, whatever this machine has. */
const FOR_IMAGE = ['--only-binary=:all:', '--python-version', '3.11'];

/** Its name, or why there is none. */
export async function smithParser(): Promise<{ readonly image: string } | { readonly why: string }> {
  const isThere = await docker
    .getImage(IMAGE)
    .inspect()
    .then(
      () => true,
      () => false,
    );
  if (isThere) return { image: IMAGE };
  const found = await fromPypi('swesmith', '0.0.9', [
    [...FOR_IMAGE, '--no-deps', 'swesmith==0.0.9', 'swebench==4.1.0'],
    [...FOR_IMAGE, ...LOADED.split(' ')],
  ]);
  if ('why' in found) return found;
  const container = await docker.createContainer({ Image: BASE_IMAGE });
  try {
    const packed = spawn('tar', ['cC', found.folder, '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await container.putArchive(packed.stdout, { path: '/usr/local/lib/python3.11/dist-packages' });
    const [repo, tag] = IMAGE.split(':');
    await container.commit({ _query: { container: container.id, repo, tag }, _body: {} });
  } finally {
    await container.remove({ force: true });
  }
  return { image: IMAGE };
}
