// A command that stops every process of its container, at the moment in which the engine starts another one in it.
import { afterEach, describe, expect, test } from 'vitest';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { testDocker } from '../../support/dockerEnvironment.ts';
import { freeStoppedExecs } from '../../support/stoppedExec.ts';

const available = await dockerAvailable();
// A thousand times a second: nothing is started in less, and the tests beside it need the processor.
const STOP_ALL = 'exec 8<> <(:); while :; do kill -STOP -1; read -rt 0.001 -u 8; done';

describe.skipIf(!available)('a command that stops every process of its container', () => {
  const bench = testDocker();
  let made: string[] = [];
  afterEach(async () => {
    for (const id of made) freeStoppedExecs(id);
    made = [];
    await bench.stop();
  });
  const start = async (supervisor: boolean) => {
    const env = await bench.start({ config: { supervisor }, factory: { diskPollMs: 200 } });
    made.push(env.info.containerId!);
    return env;
  };

  const isThere = async (id: string) =>
    (await docker.listContainers({ all: true, filters: { id: [id] } })).length > 0;

  describe.each([true, false])('supervisor %s', (supervisor) => {
    test('it ends at its limit, the next one runs, and the container is removed', async () => {
      const env = await start(supervisor);
      const began = performance.now();
      expect(await env.execute(STOP_ALL, { timeoutS: 1 })).toMatchObject({ timedOut: true });
      expect((await env.execute('echo alive')).output).toBe('alive\n');
      await env.close();
      expect(await isThere(env.info.containerId!)).toBe(false);
      expect(performance.now() - began).toBeLessThan(120_000);
    });

    test('left in the background it ends with the next command, and the work comes home', async () => {
      const env = await start(supervisor);
      const began = performance.now();
      await env.execute('echo work >>README.md');
      await env.execute(`(sleep 0.5; ${STOP_ALL}) >/dev/null 2>&1 & echo left`);
      expect(await env.execute('sleep 2', { timeoutS: 3 })).toMatchObject({ timedOut: true });
      expect((await env.execute('echo alive')).output).toBe('alive\n');
      expect(Buffer.from((await env.capturePatch()).patch).toString()).toContain('+work');
      await env.close();
      expect(await isThere(env.info.containerId!)).toBe(false);
      expect(performance.now() - began).toBeLessThan(120_000);
    });
  });
});
