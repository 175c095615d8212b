// An image whose USER is not root, with what the shipped configurations set for root.
import { afterAll, describe, expect, test } from 'vitest';
import { dockerAvailable } from '../../support/docker.ts';
import { derivedImage, testDocker } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();
const BASH_ENV = '/root/.bashrc';

describe.skipIf(!available)('BASH_ENV: /root/.bashrc, as shipped, in an image with a USER', () => {
  const bench = testDocker();
  afterAll(() => bench.stop());

  test.each([
    ['by the supervisor', { supervisor: true }],
    ['by plain exec', { supervisor: false }],
  ])('is the file of whoever runs, and says nothing where that has none, %s', async (_, how) => {
    const image = await derivedImage(
      'useradd -m -s /bin/bash dev; useradd -m bare; rm -f /home/bare/.bashrc; echo export A=dev > /home/dev/.bashrc; echo export A=root > /root/.bashrc; chmod 700 /root; mkdir /work; chown dev /work',
      undefined,
      [],
      { User: 'dev' },
    );
    const config = { cwd: '/work', env: { BASH_ENV }, ...how };
    const environment = await bench.start({ image, config });
    const SAYS = 'echo "$(id -un) $A"; bash -c "echo nested"';
    expect((await environment.execute(SAYS)).output).toBe('dev dev\nnested\n');
    expect((await environment.as('bare').execute(SAYS)).output).toBe('bare \nnested\n');
    expect((await environment.as('4711').execute('echo "first $A"')).output).toBe('first \n');
    // Root is root there: it may go where it owns nothing.
    const into = await environment.as('root').execute('echo root > /work/it && chown nobody /work/it');
    expect([into.exitCode, into.output]).toEqual([0, '']);
    // For root nothing has changed: the variable is what was configured, also where there is no such file.
    const root = environment.as('root');
    expect((await root.execute('echo $A $BASH_ENV')).output).toBe(`root ${BASH_ENV}\n`);
    await root.execute(`rm ${BASH_ENV}`);
    expect((await root.execute('echo "$A" $BASH_ENV')).output).toBe(` ${BASH_ENV}\n`);
    // A file that this user may read is the one that was named.
    await root.execute(`chmod 755 /root; echo export A=named > ${BASH_ENV}`);
    expect((await environment.execute('echo $A')).output).toBe('named\n');
    // A home that is none of the user's own, as ENV HOME=/root of an image makes it.
    await root.execute('chmod 700 /root');
    expect((await environment.execute('bash -c "echo first"', { env: { HOME: '/root' } })).output).toBe(
      'first\n',
    );
  });
});
