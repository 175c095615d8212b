// The images verb as a person calls it, with a real engine and a real registry.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rawRow } from '../dataset/rows.ts';
import { removeImages } from '../support/baseRuns.ts';
import { BIN } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { registryAvailable, startRegistry, type TestRegistry } from '../support/registry.ts';

const ready = registryAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('images verb (needs Docker and docker-registry)', () => {
  let dir: string;
  let registry: TestRegistry;
  let images: string[];

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-images-cli-'));
    registry = await startRegistry();
    images = [];
    for (const name of ['a', 'b'])
      images.push(await registry.push(`swebatch-clitest/${name}${process.pid}:1`));
    const rows = [...images, `${registry.host}/swebatch-clitest/none:1`, images[0]].map((image, i) =>
      JSON.stringify(rawRow(`x__x-${i}`, { image })),
    );
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
  });
  afterAll(async () => {
    await removeImages(images);
    await registry?.close();
    rmSync(dir, { recursive: true });
  });

  const swebatch = (...args: string[]) => program('images', ...args);
  function program(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const env = { ...process.env, HOME: dir, XDG_STATE_HOME: dir, DOCKER_CONFIG: dir };
    return new Promise((resolve) =>
      execFile(process.execPath, [BIN, ...args], { env, cwd: dir }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
      ),
    );
  }

  test('run --dry-run says which images have to come, how many bytes, and pulls none', async () => {
    const dry = (...more: string[]) =>
      program('run', '--subset', 'd.jsonl', '-m', 'scripted:x', '--dry-run', ...more);
    const { image_plan: plan } = JSON.parse((await dry('--json')).stdout);
    expect(plan).toMatchObject({
      here: 0,
      unknown: [{ image: expect.stringContaining('none:1') }],
      fits: true,
    });
    expect(plan.to_pull.toSorted()).toEqual(images.toSorted());
    expect(plan.download_bytes).toBeGreaterThan(0);
    expect(plan.disk_bytes).toBeGreaterThan(plan.download_bytes);
    const { stdout } = await dry();
    expect(stdout).toMatch(/images +3: 0 here, 2 to pull, 1 not known/);
    expect(stdout).toMatch(/disk +[\d.]+ GB to download, about [\d.]+ GB unpacked/);
    expect(stdout).toMatch(new RegExp(`^x__x-0 +pull +${images[0]}$`, 'm'));
    const never = JSON.parse((await dry('--pull', 'never', '--json')).stdout);
    expect(never.image_plan).toMatchObject({ to_pull: [], unknown: [{}, {}, {}] });
    for (const image of images)
      await expect(docker.getImage(image).inspect()).rejects.toThrow(/No such image/);
  });

  test('plan, check, pull, ls and gc follow each other', async () => {
    const plan = await swebatch('plan', 'd.jsonl', '--json');
    expect(JSON.parse(plan.stdout)).toMatchObject({ here: 0, toPull: 2, unknown: [{}], fits: true });
    expect(await swebatch('check', 'd.jsonl')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('none:1'),
    });
    expect(await swebatch('check', 'd.jsonl', '--slice', ':2')).toMatchObject({ code: 0 });

    const pull = await swebatch('pull', 'd.jsonl');
    expect(pull).toMatchObject({ code: 3, stdout: '2 of 3 images are here\n' });
    expect(pull.stderr).toMatch(/none:1 does not exist in its registry/);
    const ls = await swebatch('ls', '--json');
    expect((JSON.parse(ls.stdout) as { image: string }[]).map((i) => i.image).toSorted()).toEqual(
      images.toSorted(),
    );

    expect(await swebatch('gc', '--dry-run')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('would remove 2'),
    });
    expect(await swebatch('gc')).toMatchObject({ code: 0, stderr: expect.stringContaining('removed 2') });
    for (const image of images)
      await expect(docker.getImage(image).inspect()).rejects.toThrow(/No such image/);
    expect((await swebatch('ls')).stdout).toContain('pulled no images');
  });

  test('mistakes exit 2 and say what to do', async () => {
    expect(await swebatch('pull')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('needs a dataset'),
    });
    expect(await swebatch('gc', '--policy', 'all')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('lru:<GB>'),
    });
    expect(await swebatch('pull', 'd.jsonl', '--slice', '9:')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('0 instances'),
    });
  });
});
