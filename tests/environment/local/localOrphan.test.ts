// A local command has no container that ends with its lifetime: it must end by itself when the process that started it was killed.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', '..', '..', 'src', 'environment');

async function until(done: () => boolean, ms: number): Promise<boolean> {
  const end = performance.now() + ms;
  while (!done() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 100));
  return done();
}

test('a command outlives a killed swebatch by no more than its timeout and some seconds', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'swebatch-orphan-'));
  const pidFile = join(folder, 'pid');
  const program = `
    import { environmentConfigSchema } from '${SRC}/environments.ts';
    import { createLocalFactory } from '${SRC}/local/localFactory.ts';
    import { currentOwner } from '${SRC}/owner.ts';
    const config = environmentConfigSchema.parse({ environment_class: 'local', cwd: '${folder}', timeout: 5 });
    const env = await createLocalFactory(config, { snapshot: false }).start({ instanceId: 'i', image: '', owner: currentOwner('r', '1') });
    await env.execute('echo $$ > pid; while :; do sleep 0.2; done');
  `;
  try {
    const runner = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
      stdio: 'ignore',
    });
    expect(
      await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'), 60_000),
    ).toBe(true);
    const pid = readFileSync(pidFile, 'utf8').trim();
    runner.kill('SIGKILL');
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    expect(await until(() => !existsSync(`/proc/${pid}`), 60_000)).toBe(true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
