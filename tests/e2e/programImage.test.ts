// The Dockerfile and the compose file: the image is built, and its program starts. A whole run inside is in tests/long/dockerImage.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { buildProgramImage, docker } from '../support/program/programImage.ts';

const NAME = `swebatch-test/started:${process.pid}`;
const NODE = `swebatch-test/started-node:${process.pid}`;

describe.skipIf(!(await dockerAvailable()))('the image', () => {
  beforeAll(() => {
    buildProgramImage({ work: tempDir('swebatch-started-'), name: NAME, node: NODE });
  });
  afterAll(() => {
    docker('rmi', '-f', NAME, NODE);
  });

  test('is built from the published files, and starts the program', () => {
    const help = docker('run', '--rm', '--network', 'none', NAME);
    expect(help.stdout).toContain('swebatch run');
    const shown = docker('run', '--rm', '--network', 'none', NAME, 'config', 'show', '-c', 'demo');
    expect([shown.status, shown.stdout]).toEqual([0, expect.stringContaining('built-in demo')]);
  });

  test('the compose file names this Dockerfile and the folders that the image has', () => {
    const { services, volumes } = parse(readFileSync(join(REPO, 'compose.yaml'), 'utf8'));
    expect(services.swebatch.build).toBe('.');
    const image = JSON.parse(docker('inspect', '-f', '{{json .Config}}', NAME).stdout);
    const mounted = services.swebatch.volumes.map((volume: string) => volume.split(':')[1]);
    expect(mounted).toEqual(['/var/run/docker.sock', ...Object.keys(image.Volumes), '/root']);
    expect(Object.keys(volumes)).toEqual(['home']);
    expect(image.WorkingDir).toBe('/work');
  });
});
