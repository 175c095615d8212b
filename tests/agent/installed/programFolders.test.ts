// Two attempts of programs on this machine, at once: each reads its own prompt, and nothing of either is left.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { programFolders, promptFileIn, runProgram } from '../../../src/agent/installed/installedAgent.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createLocalFactory } from '../../../src/environment/local/localFactory.ts';
import { currentOwner } from '../../../src/environment/owner.ts';

test('each of two programs on this machine reads its own prompt', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'swebatch-two-'));
  const config = environmentConfigSchema.parse({ environment_class: 'local', cwd });
  const factory = createLocalFactory(config);
  const gate = Promise.withResolvers<'leaves'>();
  const play = async (prompt: string) => {
    const environment = await factory.start({
      instanceId: prompt,
      image: '',
      owner: currentOwner('test', prompt),
    });
    const folders = programFolders(environment);
    const result = await runProgram({
      ...{ environment, folders, prompt, limitS: 60, over: gate.promise },
      launch: { env: {}, command: `cat ${promptFileIn(folders)}; cat ${folders.home}/prompt.txt` },
    });
    await folders.remove();
    await environment.close();
    expect(existsSync(dirname(folders.files))).toBe(false);
    return result?.output;
  };
  try {
    expect(await Promise.all(['first', 'second'].map(play))).toEqual(['firstfirst', 'secondsecond']);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});
