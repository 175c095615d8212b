// A real engine on a small disk (T-33), and two real engines side by side.
import { mkdtempSync, rmSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDockerFactory } from '../../../../src/environment/docker/dockerFactory.ts';
import { environmentConfigSchema } from '../../../../src/environment/environments.ts';
import { currentOwner } from '../../../../src/environment/owner.ts';
import { createEnginePool } from '../../../../src/environment/places/enginePool.ts';
import { createHostsFactory } from '../../../../src/environment/places/hostsFactory.ts';
import { dockerImageEngine } from '../../../../src/environment/places/imageEngine.ts';
import { createImageService, type ImageService } from '../../../../src/environment/places/imageService.ts';
import { imagesConfigSchema } from '../../../../src/environment/places/imagesConfig.ts';
import { imagesOfEngines } from '../../../../src/environment/places/places.ts';
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
    return made;
  }
  let counter = 0;
  const pushed = (mb: number) =>
    registry.push(`swebatch-disktest/i${counter++}:1`, { layerBytes: [mb * MB] });

  test('eight images that never fit together all come through, with room kept by the policy', async () => {
    const images = await Promise.all(Array.from({ length: 8 }, () => pushed(30)));
    const { stage, need, done } = service({
      policy: 'remove-after',
      disk_low: '80m',
      disk_high: '100m',
      ahead: 0,
    });
    let lowest = Number.POSITIVE_INFINITY;
    for (const [i, image] of images.entries()) {
      await need(images.slice(i));
      expect(await stage.ensure(image)).toMatchObject({ pulled: true });
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
    const { stage, engine: images } = service(
      { policy: 'keep', disk_low: '130m', disk_high: '160m' },
      (message) => {
        said.push(message);
        if (message) paused.resolve();
      },
    );
    await stage.ensure(first);
    const waiting = stage.ensure(second);
    await paused.promise;
    expect(stage.isReady(second)).toBe(false);
    expect(await images.inspect(second)).toBeUndefined();
    await engine.docker.getImage(first).remove();
    expect(await waiting).toMatchObject({ pulled: true });
    expect(said).toEqual([expect.stringMatching(/^disk_full [\d.]+ MiB < 130 MiB floor$/), '']);
  });

  test('an image that does not fit is disk_full, told apart from a broken transfer', async () => {
    const image = await pushed(240);
    const { stage } = service({ disk_low: '0', disk_high: '0', tries: 2, retry_seconds: 0 });
    await expect(stage.ensure(image)).rejects.toMatchObject({
      code: 'disk_full',
      message: expect.stringContaining('no space left on device'),
    });
  });
});

describe.skipIf(!ready)('two engines side by side (needs root and dockerd)', () => {
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

  test('a trial goes to the engine that has its image, although another one is named first and is as empty', async () => {
    const image = `swebatch-placement/only:${process.pid}`;
    const [repo, tag] = image.split(':');
    await second.docker.getImage(base).tag({ repo: repo!, tag: tag! });
    const events: string[] = [];
    const serviceOf = (engine: Docker) =>
      createImageService(
        { docker: engine, dockerConfigDir: dir, stateDir: dir },
        {
          config: imagesConfigSchema.parse({ disk_low: '0', disk_high: '0' }),
          ...{ pull: 'never', stallSeconds: 60 },
          onEvent: ({ type }) => events.push(type),
        },
      );
    const services = new Map([
      ['first', serviceOf(docker)],
      ['second', serviceOf(second.docker)],
    ]);
    const pool = createEnginePool(
      ['first', 'second'].map((name) => ({
        name,
        slots: 1,
        ping: () => services.get(name)!.engine.answers(),
      })),
    );
    const config = { ahead: 0, policy: 'keep', disk_low: '0', pull: 'never', memoryBytes: 1 } as const;
    const images = imagesOfEngines(services, config, pool);
    try {
      const { signal } = new AbortController();
      expect((await images.ready(image, signal)).place!.host).toBe('second');
      // It was not looked for in vain on the first.
      expect(events).toEqual(['ready']);
      // The slot of second is taken: another image goes to the free one.
      expect((await images.ready(base, signal)).place!.host).toBe('first');
    } finally {
      await images.close();
      await second.docker.getImage(image).remove();
    }
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
      await made.stage.ensure(base);
      const free = await made.freeBytes();
      expect(Math.abs(free! - seen)).toBeLessThan(20 * MB);
      expect(await made.disk.check()).toMatchObject({ open: false, freeBytes: free });
      expect(said).toEqual([expect.stringMatching(/^disk_full .* floor$/)]);
      expect(await second.docker.listContainers({ all: true })).toEqual([]);
    } finally {
      await made.close();
      line.close();
    }
  });

  test('both are used; when one is killed its attempt ends and the next ones run on the other', async () => {
    const config = environmentConfigSchema.parse({ pull: 'never', memory: '256m', seal_history: false });
    const factories = [
      createDockerFactory(config),
      createDockerFactory(config, { docker: { socketPath: second.socket } }),
    ];
    const changes: string[] = [];
    const names = ['first', 'second'];
    const engines = names.map((name, i) => ({ name, slots: 2, ping: () => factories[i]!.docker.ping() }));
    const pool = createEnginePool(engines, {
      onChange: (host, state) => changes.push(`${host} ${state}`),
    });
    const factory = createHostsFactory({
      pool,
      factories: new Map(names.map((name, i) => [name, factories[i]!])),
    });
    const start = (attempt: number) =>
      factory.start({
        instanceId: `a__a-${attempt}`,
        image: base,
        owner: currentOwner('two-engines', `${attempt}`),
      });
    const opened = [await start(1), await start(2)];
    try {
      expect(opened.map((e) => e.info.notes.at(-1))).toEqual(['engine: first', 'engine: second']);
      for (const environment of opened)
        expect((await environment.execute('echo here')).output).toBe('here\n');
      await second.kill();
      await expect(opened[1]!.execute('echo still here?')).rejects.toMatchObject({
        name: 'EnvironmentError',
      });
      expect((await opened[0]!.execute('echo here')).exitCode).toBe(0);
      const next = await start(3);
      opened.push(next);
      expect(next.info.notes.at(-1)).toBe('engine: first');
      expect((await next.execute('echo again')).output).toBe('again\n');
      expect(changes).toEqual(['second lost']);
    } finally {
      for (const environment of opened) await environment.close();
      await factory.close();
    }
  });
});
