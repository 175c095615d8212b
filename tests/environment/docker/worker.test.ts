// Somebody else works in a container than its own user: commands are exec'd as that user, and nothing of ours runs as it.
import { afterAll, describe, expect, test } from 'vitest';
import { dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE, testDocker } from '../../support/dockerEnvironment.ts';
import { countProcesses } from '../suites/bench.ts';

const available = await dockerAvailable();

describe.skipIf(!available)('who works in a container', () => {
  const bench = testDocker();
  afterAll(() => bench.stop());
  const start = (worker: string, more: { startupCommand?: string; task?: string } = {}) =>
    bench.start({
      image: BASE_IMAGE,
      config: { cwd: '/tmp' },
      request: {
        ...(more.startupCommand && { startupCommand: more.startupCommand }),
        container: { worker, ...(more.task && { startupCommand: more.task }) },
      },
    });

  test('is whom the task names, and so is who makes the configured preparations', async () => {
    const environment = await start('nobody', {
      task: 'id -un > /tmp/task',
      startupCommand: 'id -un > /tmp/configured',
    });
    const said = await environment.execute('echo $(id -un) $(cat /tmp/task /tmp/configured) $HOME');
    expect(said.output).toBe('nobody root nobody /nonexistent\n');
    expect((await environment.as('daemon').execute('id -un')).output).toBe('daemon\n');
    expect(environment.info.transport).toBe('exec');
    // A number is the user that has it, and that of the container needs no process of its own.
    expect((await start('0')).info.transport).toBe('supervisor');
  });

  test('a command of 300 KB leaves nothing behind, and one that runs out of time leaves nothing running', async () => {
    const environment = await start('nobody');
    const long = await environment.execute(`: ${'x'.repeat(300_000)}; echo done; ls -a /tmp`);
    expect([long.output.split('\n')[0], long.exitCode]).toEqual(['done', 0]);
    expect((await environment.execute('ls -A /tmp')).output).toBe('');
    const late = await environment.execute('setsid sleep 7391 & sleep 7392', { timeoutS: 1 });
    expect(late.timedOut).toBe(true);
    expect((await environment.execute(countProcesses('739'))).output).toBe('0\n');
  });

  test('ends what is its own alone, also when a patch is captured', async () => {
    const environment = await start('nobody');
    await environment.as('root').execute('setsid sleep 8391 > /dev/null 2>&1 < /dev/null &');
    await environment.execute('setsid sleep 8392 > /dev/null 2>&1 < /dev/null &');
    const running = async () =>
      (await environment.execute('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep "^839"'))
        .output;
    expect((await running()).split('\n').sort()).toEqual(['', '8391', '8392']);
    await environment.execute('kill -9 -1');
    expect(await running()).toBe('8391\n');
    await environment.execute('setsid sleep 8393 > /dev/null 2>&1 < /dev/null &');
    await environment.capturePatch();
    expect(await running()).toBe('8391\n');
  });

  test('who is not in the image is named', async () => {
    await expect(start('nosuch')).rejects.toThrow(
      /no command can be started as the user nosuch, whom the task names: .*unable to find user nosuch/,
    );
  });
});
