// What a command printed is read whole, however busy the process is that reads it.
import { stat } from 'node:fs';
import { expect, test } from 'vitest';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createLocalFactory } from '../../../src/environment/local/localFactory.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { tempDir } from '../../support/cli.ts';

/** Longer than the last bytes of a command are waited for. */
const BUSY_MS = 120;

test('a process that is busy when commands end loses none of their output', async () => {
  const config = environmentConfigSchema.parse({ environment_class: 'local', cwd: tempDir() });
  const factory = createLocalFactory(config);
  const request = { instanceId: 'a__a-1', image: '', owner: currentOwner('test-run', '1') };
  // Several at a time: the end of one is told together with that of another, before what the other printed was read.
  const environments = await Promise.all(Array.from({ length: 16 }, () => factory.start(request)));
  const block = () => {
    for (const until = performance.now() + BUSY_MS; performance.now() < until; );
  };
  let over = false;
  const turns = (): void => {
    if (over) return;
    block();
    setImmediate(turns);
  };
  const answers = (): void => {
    if (over) return;
    block();
    stat('.', answers);
  };
  stat('.', answers);
  setImmediate(turns);
  try {
    for (let i = 0; i < 2; i += 1) {
      const results = await Promise.all(environments.map((one) => one.execute(`sleep 0.$RANDOM; echo ${i}`)));
      expect(results.map(({ output }) => output)).toEqual(environments.map(() => `${i}\n`));
    }
  } finally {
    over = true;
    for (const environment of environments) await environment.close();
  }
});
