// A real engine on a small disk (T-33), and one beside the engine of this machine.
import { mkdtempSync, rmSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dockerImageEngine } from '../../../../src/environment/places/imageEngine.ts';
import { createImageService, type ImageService } from '../../../../src/environment/places/imageService.ts';
import { imagesConfigSchema } from '../../../../src/environment/places/imagesConfig.ts';
import { systemPullClock } from '../../../../src/environment/places/pullImage.ts';
import { loadBase } from '../../../support/baseRuns.ts';
import { docker, dockerAvailable } from '../../../support/docker.ts';
import { registryAvailable, startRegistry, type TestRegistry } from '../../../support/registry.ts';
import {
  type SecondEngine,
  secondEngineAvailable,
  startSecondEngine,
} from '../../../support/secondEngine.ts';

const ready = registryAvailable() && secondEngineAvailable() && (await dockerAvailable());
const MB = 1_000_000;
const ensureOf =
  ({ ensure }: ImageService) =>
  (image: string) =>
    ensure(image, { signal: undefined, waits: () => undefined });

describe.skipIf(!ready)('a small disk (needs root, dockerd and docker-registry)', () => {
  let engine: SecondEngine;
  let registry: TestRegistry;
  let dir: string;
  let services: ImageService[];

  beforeAll(async () => {
    registry = await startRegistry();
    engine = await startSecondEngine(220);
  });
  afterAll(async () => {
    await engine?.close();
    await registry?.close();
  });
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-disk-'));
    services = [];
  });
  afterEach(async () => {
    for (const service of services) await service.close();
    for (const { Id } of await engine.docker.listImages())
      await engine.docker.getImage(Id).remove({ force: true });
    rmSync(dir, { recursive: true });
  });

  const free = async () => {
    const { bavail, bsize } = await statfs(engine.disk);
    return bavail * bsize;
  };
  function service(config: Record<string, unknown>, onDisk: (message: string) => void = () => {}) {
    const made = createImageService(
      { docker: engine.docker, dockerConfigDir: dir, stateDir: dir },
      {
        config: imagesConfigSchema.parse(config),
        pull: 'missing',
        stallSeconds: 60,
        clock: { now: Date.now, sleep: (ms, signal) => systemPullClock.sleep(Math.min(ms, 20), signal) },
        onDisk: (state) => onDisk(state.message),
      },
    );
    services.push(made);
    const { here, need, done } = made;
    return { ensure: ensureOf(made), here, need, done };
  }
  let counter = 0;
  const pushed = (mb: number) =>
    registry.push(`swebatch-disktest/i${counter++}:1`, { layerBytes: [mb * MB] });

  test('eight images that never fit together all come through, with room kept by the policy', async () => {
    const images = await Promise.all(Array.from({ length: 8 }, () => pushed(30)));
    const { ensure, need, done } = service({
      policy: 'remove-after',
      disk_low: '80m',
      disk_high: '100m',
      ahead: 0,
    });
    let lowest = Number.POSITIVE_INFINITY;
    for (const [i, image] of images.entries()) {
      await need(images.slice(i));
      expect(await ensure(image)).toMatchObject({ pulled: true });
      lowest = Math.min(lowest, await free());
      await need(images.slice(i + 1));
      await done(image);
    }
    expect(lowest).toBeGreaterThan(50 * MB);
    expect(await engine.docker.listImages()).toEqual([]);
  });

  test('under keep the pulls pause at the floor, say so, and go on when somebody makes room [T-33]', async () => {
    const [first, second] = [await pushed(80), await pushed(20)];
    const said: string[] = [];
    const paused = Promise.withResolvers<void>();
    const { ensure, here } = service({ policy: 'keep', disk_low: '130m', disk_high: '160m' }, (message) => {
      said.push(message);
      if (message) paused.resolve();
    });
    await ensure(first);
    const waiting = ensure(second);
    await paused.promise;
    expect(here()).toEqual([first]);
    expect(await dockerImageEngine(engine.docker).inspect(second)).toBeUndefined();
    await engine.docker.getImage(first).remove();
    expect(await waiting).toMatchObject({ pulled: true });
    expect(said).toEqual([expect.stringMatching(/^disk_full [\d.]+ MiB < 130 MiB floor$/), '']);
  });

  test('an image that does not fit is disk_full, told apart from a broken transfer', async () => {
    const image = await pushed(240);
    const { ensure } = service({ disk_low: '0', disk_high: '0', tries: 2, retry_seconds: 0 });
    await expect(ensure(image)).rejects.toMatchObject({
      code: 'disk_full',
      message: expect.stringContaining('no space left on device'),
    });
  });
});

describe.skipIf(!ready)('an engine beside that of this machine (needs root and dockerd)', () => {
  let second: SecondEngine;
  let dir: string;
  let base: string;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-two-'));
    second = await startSecondEngine(1500);
    base = await loadBase(second, dir);
  });
  afterAll(async () => {
    await second?.close();
    rmSync(dir, { recursive: true });
  });

  test('what was pulled is remembered for each of them, although one machine gives both the same ID', async () => {
    const engines = [dockerImageEngine(docker), dockerImageEngine(second.docker)];
    const ids = await Promise.all(engines.map(async (engine) => (await engine.info()).id));
    expect(new Set(ids)).toHaveLength(2);
    expect((await engines[0]!.info()).id).toBe(ids[0]);
  });

  test('the disk of an engine over TCP is measured in a container there, and its floor holds', async () => {
    const line = createServer((client) => {
      const engine = connect(second.socket);
      client.pipe(engine).pipe(client);
      for (const end of [client, engine]) end.on('error', () => undefined);
    });
    await new Promise<void>((listening) => line.listen(0, '127.0.0.1', listening));
    const { port } = line.address() as AddressInfo;
    const { bavail, bsize } = await statfs(second.disk);
    const seen = bavail * bsize;
    const floor = `${Math.ceil(seen / MB) + 100}m`;
    const said: string[] = [];
    const made = createImageService(
      { docker: new Docker({ host: '127.0.0.1', port }), dockerConfigDir: dir, stateDir: dir },
      {
        config: imagesConfigSchema.parse({ disk_low: floor, disk_high: floor }),
        ...{ pull: 'never', stallSeconds: 60, measureDisk: true },
        onDisk: (state) => said.push(state.message),
      },
    );
    try {
      // Found there, not pulled: the ledger knows nothing of it.
      await ensureOf(made)(base);
      const free = await made.freeBytes();
      expect(Math.abs(free! - seen)).toBeLessThan(20 * MB);
      expect(await made.hasRoom()).toBe(false);
      expect(said).toEqual([expect.stringMatching(/^disk_full .* floor$/)]);
      expect(await second.docker.listContainers({ all: true })).toEqual([]);
    } finally {
      await made.close();
      line.close();
    }
  });
});
