// A whole run whose images come from a real registry in trouble (T-34): slots are not held up, attempts not charged, images removed after.
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/runs.ts';
import { type TrialLine, trialLines } from '../../src/store/trialLines.ts';
import { rawRow } from '../dataset/rows.ts';
import { cli, tempDir } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { registryAvailable, startRegistry, type TestRegistry } from '../support/registry.ts';

// Not the synchronous form: the registry's proxy lives in this process.
const exec = promisify(execFile);
const BASE = 'swebatch-test/base:1';
const bash = (command: string) => ({ content: `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\`` });
const ready = registryAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('a run with images from a registry (needs Docker and docker-registry)', () => {
  let dir: string;
  let registry: TestRegistry;
  let images: string[];

  beforeAll(async () => {
    dir = tempDir('swebatch-run-images-');
    registry = await startRegistry();
    // Two images of their own that differ in a label, pushed and taken off the engine again.
    images = ['a', 'b'].map((name) => `${registry.host}/swebatch-runtest/${name}${process.pid}:1`);
    for (const [i, image] of images.entries()) {
      const container = await docker.createContainer({ Image: BASE, Cmd: ['true'] });
      const [, repo, tag] = /^(.*):([^:]+)$/.exec(image)!;
      await container.commit({ repo, tag, changes: `LABEL test=${i}` });
      await container.remove();
      await exec('docker', ['push', '-q', image]);
      await exec('docker', ['rmi', image]);
    }
    const head = ['run', '--rm', '--network', 'none', BASE, 'git', '-C', '/testbed', 'rev-parse', 'HEAD'];
    const commit = (await exec('docker', head)).stdout.trim();
    const row = (id: string, image: string) => JSON.stringify(rawRow(id, { image, base_commit: commit }));
    const rows = [
      row('x__x-1', images[0]!),
      row('x__x-2', images[0]!),
      row('x__x-3', `${registry.host}/swebatch-runtest/none:1`),
      row('x__x-4', images[1]!),
    ];
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    const submit = bash(
      'echo hi > new.txt; git add -A; git diff --cached > /tmp/p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat /tmp/p',
    );
    writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies: [submit] }));
  });
  afterAll(async () => {
    for (const image of images)
      await docker
        .getImage(image)
        .remove()
        .catch(() => {});
    await registry.close();
    rmSync(dir, { recursive: true });
  });

  function linesOf(name: string): TrialLine[] {
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      return trialLines(store, runByName(store, name)!.id);
    } finally {
      store.close();
    }
  }
  const run = (name: string, ...more: string[]) =>
    cli(
      [
        'run',
        '--subset',
        join(dir, 'd.jsonl'),
        '-m',
        `scripted:${join(dir, 'replies.json')}`,
        '-o',
        join(dir, 'out'),
      ].concat(
        [
          '--run-id',
          name,
          '--progress',
          'plain',
          '-c',
          'run.retry.backoff_s=0',
          '-c',
          'run.breaker.consecutive=0',
        ],
        more,
      ),
      { env: { XDG_STATE_HOME: dir, DOCKER_CONFIG: dir } },
    );

  test('429 delays pulls only; one pull an image; the missing image ends its own trial; nothing of ours is left', async () => {
    registry.requests.length = 0;
    const headers = { 'retry-after': '1', 'content-type': 'application/json' };
    const body = JSON.stringify({ errors: [{ code: 'TOOMANYREQUESTS', message: 'slow down' }] });
    // Three images in the plan before the run, then the engine's HEAD and GET, and our HEAD that asks when to come back.
    registry.faults.push({ on: '/manifests/', kind: 'status', status: 429, headers, body, times: 6 });
    const result = await run(
      'r1',
      '-w',
      '2',
      '-c',
      'images.policy=remove-after',
      '-c',
      'images.retry_seconds=0',
      '-c',
      'images.max_concurrent_pulls=1',
    );
    expect(result).toMatchObject({ code: 3, stderr: expect.stringContaining('pulls pause until') });
    const lines = linesOf('r1');
    expect(lines.map((l) => [l.instance_id, l.exit_reason])).toEqual([
      ['x__x-1', 'submitted'],
      ['x__x-2', 'submitted'],
      ['x__x-3', 'env_image_missing'],
      ['x__x-4', 'submitted'],
    ]);
    expect(result.stderr.match(/pulled /g)).toHaveLength(2);
    expect(result.stderr).toMatch(/none:1 does not exist in its registry/);
    const blobs = registry.requests.filter((r) => r.method === 'GET' && r.path.includes('/blobs/'));
    expect(new Set(blobs.map((r) => r.path))).toHaveLength(blobs.length);
    for (const image of images)
      await expect(docker.getImage(image).inspect()).rejects.toThrow(/No such image/);
    expect((await cli(['images', 'ls'], { env: { XDG_STATE_HOME: dir } })).stdout).toContain(
      'pulled no images',
    );
  }, 90_000);
});
