// The image of the Dockerfile, built from what npm would publish: swebatch in a container, instances beside it on the host's engine.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BIN, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { buildProgramImage, docker } from '../support/program/programImage.ts';

const ready = await dockerAvailable();
const NAME = `swebatch-test/program:${process.pid}`;
const NODE = `swebatch-test/node:${process.pid}`;
const work = tempDir('swebatch-image-');
const results = join(work, 'results');

/** On the host's engine, as the compose file starts it. */
const inContainer = (...args: string[]): string[] => [
  ...['run', '--rm', '--init', '--network', 'none', '-v', '/var/run/docker.sock:/var/run/docker.sock'],
  ...['-v', `${results}:/work/results`, NAME, ...args],
];

describe.skipIf(!ready || !existsSync('/var/run/docker.sock'))('swebatch in a container', () => {
  beforeAll(() => {
    buildProgramImage({ work, name: NAME, node: NODE });
  });
  afterAll(() => {
    docker('rmi', '-f', NAME, NODE);
  });

  test('runs and grades instances on the engine outside, and mounts nothing of the host', async () => {
    const how = ['--slice', '0:2', '-w', '2', '--evaluate', '--model-latency', '500', '--run-id', 'inside'];
    const running = spawn('docker', inContainer('run', '-c', 'demo', ...how));
    let said = '';
    running.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const code = new Promise<number | null>((resolve) => running.on('close', resolve));
    // Each container of the run, while it lives.
    const mounts = new Map<string, string>();
    while (running.exitCode === null) {
      for (const id of docker('ps', '-q', '--filter', 'label=swebatch.run=inside')
        .stdout.split('\n')
        .filter(Boolean))
        mounts.set(
          id,
          docker('inspect', '-f', '{{json .HostConfig.Binds}} {{json .Mounts}}', id).stdout.trim(),
        );
      await new Promise(setImmediate);
    }
    expect(await code, said).toBe(0);
    expect(said).toMatch(/run inside: complete · agent 2/);
    expect(said).toMatch(/graded: resolved 2/);
    expect(mounts.size).toBeGreaterThanOrEqual(2);
    expect([...new Set(mounts.values())].filter((seen) => seen !== '')).toEqual(['null []']);
    expect(readdirSync(join(results, 'inside'))).toEqual(
      expect.arrayContaining(['preds.json', 'run.json', 'summary.html', 'logs']),
    );
    expect(docker('ps', '-aq', '--filter', 'label=swebatch.run=inside').stdout).toBe('');
  });

  test('the record is one that a program outside reads, and goes on with', () => {
    const outside = spawnSync(process.execPath, [BIN, 'verify', 'inside', '-o', results], {
      encoding: 'utf8',
    });
    expect(outside.stdout + outside.stderr).not.toMatch(/error/);
    expect(outside.status).toBe(0);
    expect(docker(...inContainer('report', 'inside')).stdout).toContain('2/2 = 100.0 %');
  });
});
