// Pulls by the real engine from a real registry behind a proxy that injects faults (T-34).
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseReference } from '../../../../src/base/imageReference.ts';
import { EnvironmentError } from '../../../../src/environment/environment.ts';
import { dockerImageEngine } from '../../../../src/environment/places/imageEngine.ts';
import type { ImageEvent } from '../../../../src/environment/places/imageJobs.ts';
import { orderBySharedLayers } from '../../../../src/environment/places/imagePlan.ts';
import { createImageService, type ImageService } from '../../../../src/environment/places/imageService.ts';
import { imagesConfigSchema } from '../../../../src/environment/places/imagesConfig.ts';
import { systemPullClock } from '../../../../src/environment/places/pullImage.ts';
import { askExists, askManifest, askReset } from '../../../../src/environment/places/registry.ts';
import { docker, dockerAvailable } from '../../../support/docker.ts';
import { registryAvailable, startRegistry, type TestRegistry } from '../../../support/registry.ts';

const ready = registryAvailable() && (await dockerAvailable());
// htpasswd line of tester:secret
const HTPASSWD = 'tester:$2y$05$YzRHIvW6uC1lTRpxyqRX0e3/nBzrzupmAVzuZOPjx11zwdegR8.oi\n';

const engine = dockerImageEngine(docker);

describe.skipIf(!ready)('images from a real registry (needs Docker and docker-registry)', () => {
  let registry: TestRegistry;
  let dir: string;
  let services: ImageService[] = [];
  let mine: string[] = [];

  beforeAll(async () => {
    registry = await startRegistry();
  });
  afterAll(() => registry.close());
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-images-'));
    registry.faults.length = 0;
    registry.requests.length = 0;
  });
  afterEach(async () => {
    for (const service of services) await service.close();
    for (const image of mine)
      await docker
        .getImage(image)
        .remove({ force: false })
        .catch(() => {});
    services = [];
    mine = [];
    rmSync(dir, { recursive: true });
  });

  let counter = 0;
  async function pushed(image: Parameters<TestRegistry['push']>[1] = {}, from = registry): Promise<string> {
    const name = await from.push(`swebatch-pulltest/i${process.pid}-${counter++}:1`, image);
    mine.push(name);
    return name;
  }
  function service(config: Record<string, unknown> = {}, more: Record<string, unknown> = {}, stateDir = dir) {
    const events: ImageEvent[] = [];
    const made: ImageService = createImageService(
      { docker, dockerConfigDir: dir, stateDir },
      {
        config: imagesConfigSchema.parse({ retry_seconds: 0, disk_low: '0', disk_high: '0', ...config }),
        pull: 'missing',
        stallSeconds: 60,
        onEvent: (event) => events.push(event),
        ...more,
      },
    );
    services.push(made);
    const ensure = (image: string) => made.ensure(image, { signal: undefined, waits: () => undefined });
    return { ...made, ensure, events };
  }
  const failure = async (promise: Promise<unknown>): Promise<EnvironmentError> => {
    const error = await promise.catch((e: unknown) => e);
    if (!(error instanceof EnvironmentError)) throw new Error(`not an EnvironmentError: ${String(error)}`);
    return error;
  };
  const manifestGets = (image: string) =>
    registry.requests.filter((r) =>
      r.path.includes(`${image.split('/').slice(1).join('/').split(':')[0]}/manifests/`),
    ).length;

  test('four instances, one pull; the digest of the registry is recorded', async () => {
    const image = await pushed({ layerBytes: [200_000, 100_000] });
    const { ensure, events } = service();
    const all = await Promise.all([1, 2, 3, 4].map(() => ensure(image)));
    expect(new Set(all)).toHaveLength(1);
    expect(all[0]).toMatchObject({
      pulled: true,
      digest: expect.stringMatching(/i\d+-\d+@sha256:[0-9a-f]{64}$/),
    });
    expect(events.filter((e) => e.type === 'started')).toHaveLength(1);
    const asked = manifestGets(image);
    await ensure(image);
    expect(manifestGets(image)).toBe(asked);
  });

  test.each([
    ['a tag that is not there', (i: string) => i.replace(/:1$/, ':2'), 'image_missing', 'missing'],
    ['a repository that is not there', (i: string) => i.replace('/i', '/nope'), 'image_missing', 'missing'],
    ['a malformed name', (i: string) => i.replace('swebatch', 'Swebatch'), 'image_missing', 'wrong_name'],
  ])('%s', async (_, change, code, sub) => {
    const image = change(await pushed());
    const error = await failure(service().ensure(image));
    expect(error).toMatchObject({ code, sub, message: expect.stringContaining(image) });
    expect(error.evidence).toMatchObject({ image, fix: expect.any(String), message: expect.any(String) });
  });

  test('429 pauses pulls until the Retry-After of the registry; then the pull goes on by itself', async () => {
    const image = await pushed();
    const headers = { 'retry-after': '7', 'content-type': 'application/json' };
    const body = JSON.stringify({ errors: [{ code: 'TOOMANYREQUESTS', message: 'slow down' }] });
    registry.faults.push({ on: '/manifests/', kind: 'status', status: 429, headers, body });
    const slept: number[] = [];
    const clock = {
      now: () => 0 + slept.reduce((a, b) => a + b, 0),
      sleep: async (ms: number) => {
        slept.push(ms);
        registry.faults.length = 0;
      },
    };
    const { ensure, events } = service({}, { clock });
    expect(await ensure(image)).toMatchObject({ pulled: true });
    expect(slept).toEqual([7000]);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'paused', reason: 'rate_limited', until: 7000 }),
    );
  });

  test('a layer that ends early is fetched again, here by the engine, else by us', async () => {
    const image = await pushed({ layerBytes: [400_000] });
    registry.faults.push({ on: '/blobs/', kind: 'cut', afterBytes: 60_000, times: 2 });
    expect(await service().ensure(image)).toMatchObject({ pulled: true });
  });

  test('a stalled layer is cut after the deadline and tried again; a registry that only stalls is an error', async () => {
    const image = await pushed({ layerBytes: [300_000] });
    registry.faults.push({ on: '/blobs/', kind: 'stall', afterBytes: 20_000, times: 2 });
    const { ensure, events } = service({}, { stallSeconds: 2 });
    expect(await ensure(image)).toMatchObject({ pulled: true });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'retry', message: expect.stringContaining('nothing moved') }),
    );

    const dead = await pushed({ layerBytes: [300_000] });
    registry.faults.push({ on: '/blobs/', kind: 'stall', afterBytes: 20_000 });
    expect(await failure(service({ tries: 1 }, { stallSeconds: 2 }).ensure(dead))).toMatchObject({
      code: 'image_pull_failed',
      sub: 'stalled',
    });
  });

  test('a slow registry is no stalled one, and its progress is shown', async () => {
    const image = await pushed({ layerBytes: [2_000_000] });
    registry.faults.push({ on: '/blobs/', kind: 'slow', pauseMs: 120 });
    const { ensure, events } = service({}, { stallSeconds: 3 });
    await ensure(image);
    const seen = events.flatMap((e) => (e.type === 'progress' ? [e.progress.downloadedBytes] : []));
    expect(new Set(seen).size).toBeGreaterThan(3);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });

  test('a registry in trouble is told apart from one that is not there', async () => {
    const image = await pushed();
    registry.faults.push({ on: '/manifests/', kind: 'status', status: 503 });
    const troubled = await failure(service({ tries: 2 }).ensure(image));
    expect(troubled).toMatchObject({ sub: 'unreachable', message: expect.stringContaining('503') });
    const gone = await failure(service({ tries: 1 }).ensure('127.0.0.1:9/x/y:1'));
    expect(gone).toMatchObject({
      sub: 'unreachable',
      message: expect.stringContaining('connection refused'),
    });
  });

  test('an image of another processor is found out', async () => {
    const other = process.arch === 'arm64' ? 'amd64' : 'arm64';
    const image = await pushed({ architecture: other });
    expect((await service().ensure(image)).warnings).toEqual([expect.stringContaining('EMULATED')]);
    const platform = `linux/${other === 'arm64' ? 'amd64' : 'arm64'}`;
    expect(await failure(service({}, { platform }).ensure(image))).toMatchObject({
      sub: 'wrong_platform',
    });
  });

  test('a mirror that lacks the image is passed over; what a mirror has is found under its own name', async () => {
    const image = await pushed();
    const name = `other.example/swebatch-pulltest/${image.split('/').at(-1)}`;
    mine.push(name);
    const { ensure } = service({ mirrors: { 'other.example': ['127.0.0.1:9', registry.host] }, tries: 1 });
    expect(await ensure(name)).toMatchObject({
      from: image,
      digest: expect.stringContaining(registry.host),
    });
    expect(await docker.getImage(name).inspect()).toMatchObject({ RepoTags: [name] });
    // The engine has forgotten the digest with the mirror's name; a later sitting records the same one.
    expect(await service().ensure(name)).toMatchObject({
      pulled: false,
      digest: expect.stringContaining(`${registry.host}/`),
    });
  });

  test('a login that comes while a run waits is used by the next pull', async () => {
    const locked = await startRegistry({ htpasswd: HTPASSWD });
    try {
      const image = await pushed({}, locked);
      const { ensure } = service();
      expect(await failure(ensure(image))).toMatchObject({ sub: 'no_access' });
      const auths = { [locked.host]: { auth: btoa('tester:secret') } };
      writeFileSync(join(dir, 'config.json'), JSON.stringify({ auths }));
      expect(await ensure(image)).toMatchObject({ pulled: true });
    } finally {
      await locked.close();
    }
  });

  test('logins come from Docker’s config; without one the fix is to log in', async () => {
    const locked = await startRegistry({ htpasswd: HTPASSWD });
    try {
      const image = await pushed({}, locked);
      expect(await failure(service().ensure(image))).toMatchObject({
        sub: 'no_access',
        message: expect.stringContaining(`docker login ${locked.host}`),
      });
      const login = (text: string) =>
        writeFileSync(
          join(dir, 'config.json'),
          JSON.stringify({ auths: { [locked.host]: { auth: btoa(text) } } }),
        );
      login('tester:wrong');
      expect(await failure(service().ensure(image))).toMatchObject({
        sub: 'no_access',
        message: expect.not.stringContaining('wrong'),
      });
      login('tester:secret');
      const right = service();
      expect(await right.manifestOf(image)).toMatchObject({ ok: true });
      expect(await right.ensure(image)).toMatchObject({ pulled: true });
    } finally {
      await locked.close();
    }
  });

  test('sizes are asked from the registry: shared layers count once, and neighbours share', async () => {
    const sizes = [500_000, 10_000];
    const [a, b, c, d] = [
      await pushed({ layerBytes: sizes, baseSeed: 'one' }),
      await pushed({ layerBytes: sizes, baseSeed: 'two' }),
      await pushed({ layerBytes: sizes, baseSeed: 'one' }),
      await pushed({ layerBytes: sizes, baseSeed: 'two' }),
    ];
    const { plan, ensure } = service();
    await ensure(a);
    const missing = `${registry.host}/swebatch-pulltest/none:1`;
    const found = await plan([a, b, c, d, b, missing]);
    expect(found).toMatchObject({ here: 1, toPull: 3, unknown: [{ image: missing }] });
    expect(found.downloadBytes).toBeGreaterThan(1_030_000);
    expect(found.downloadBytes).toBeLessThan(1_045_000);
    const known = (
      await Promise.all(
        [b, c, d].map(async (image) => ({ image, answer: await service().manifestOf(image) })),
      )
    ).map(({ image, answer }) => ({ image, layers: answer.ok ? answer.layers.map((l) => l.digest) : [] }));
    expect(orderBySharedLayers(known, (i) => i.layers).map((i) => i.image)).toEqual([b, d, c]);
  });

  test('whether an image exists is asked without fetching its manifest', async () => {
    const image = await pushed();
    const [there, none] = [parseReference(image), parseReference(image.replace(/:[^:/]*$/, ':none'))];
    if (!there.ok || !none.ok) throw new Error('no name');
    registry.requests.length = 0;
    expect(await askExists(there.reference)).toMatchObject({
      ok: true,
      digest: expect.stringMatching(/^sha256:/),
    });
    expect(await askExists(none.reference)).toMatchObject({ ok: false, status: 404 });
    expect(registry.requests.map((r) => r.method)).toEqual(['HEAD', 'HEAD']);
  });

  test('asking for the reset of a registry that does not refuse gives none', async () => {
    const parsed = parseReference(await pushed());
    if (!parsed.ok) throw new Error(parsed.message);
    expect(await askReset(parsed.reference)).toBeUndefined();
    registry.faults.push({
      on: '/manifests/',
      kind: 'status',
      status: 429,
      headers: { 'ratelimit-reset': '30' },
    });
    expect(await askReset(parsed.reference)).toBe(30_000);
    expect(await askManifest(parsed.reference)).toMatchObject({
      ok: false,
      status: 429,
      retryAfterMs: 30_000,
    });
    // As Docker Hub: a HEAD is answered when the limit is used up, and a pull is refused.
    registry.faults.splice(0, 1, {
      on: '/manifests/',
      method: 'GET',
      kind: 'status',
      status: 429,
      headers: { 'retry-after': '21' },
    });
    expect(await askReset(parsed.reference)).toBe(21_000);
  });

  describe('removing', () => {
    test('remove-after takes what we pulled and nobody needs, and nothing else', async () => {
      const [foreign, queued, used, free] = [await pushed(), await pushed(), await pushed(), await pushed()];
      await service({}, {}, join(dir, 'somebody-else')).ensure(foreign);
      const { ensure, need, done, collect, own } = service({ policy: 'remove-after' });
      for (const image of [foreign, queued, used, free]) await ensure(image);
      const container = await docker.createContainer({
        Image: used,
        Cmd: ['/x'],
        Labels: { 'swebatch-pulltest': '1' },
      });
      try {
        await need([queued]);
        expect((await collect({ dryRun: true })).removed.map((i) => i.image)).toEqual([free]);
        expect(await engine.inspect(free)).toBeDefined();
        expect((await done(free)).removed.map((i) => i.image)).toEqual([free]);
        expect(
          await Promise.all([foreign, queued, used, free].map(async (i) => Boolean(await engine.inspect(i)))),
        ).toEqual([true, true, true, false]);
        expect((await own()).map(({ image, state }) => [image, state])).toEqual([
          [queued, 'needed'],
          [used, 'free'],
        ]);
        expect(await ensure(free)).toMatchObject({ pulled: true });
      } finally {
        await container.remove({ force: true });
      }
    });

    test('the sealed copy of an image goes with it, and protects it while an attempt runs in it', async () => {
      const image = await pushed();
      const { ensure, collect } = service({ policy: 'remove-after' });
      const { id } = await ensure(image);
      const copy = `swebatch-pulltest-sealed:${process.pid}`;
      const container = await docker.createContainer({ Image: image, Cmd: ['/x'] });
      await container.commit({
        repo: copy.split(':')[0],
        tag: copy.split(':')[1],
        changes: `LABEL swebatch.sealed.source=${id}`,
      });
      await container.remove();
      const attempt = await docker.createContainer({ Image: copy, Cmd: ['/x'] });
      expect((await collect()).removed).toEqual([]);
      await attempt.remove();
      expect((await collect()).removed.map((i) => i.image)).toEqual([image]);
      expect([await engine.inspect(copy), await engine.inspect(id)]).toEqual([undefined, undefined]);
    });

    test('a name that points to another image today is not ours any more', async () => {
      const [image, other] = [await pushed(), await pushed()];
      const { ensure, collect } = service({ policy: 'remove-after' });
      await ensure(image);
      await service({}, {}, join(dir, 'somebody-else')).ensure(other);
      await docker.getImage(image).remove({ force: false });
      await engine.tag(other, image);
      expect((await collect()).removed).toEqual([]);
      expect(await engine.inspect(image)).toBeDefined();
    });

    test('a low disk holds back pulls; room made by the policy lets them go', async () => {
      const [old, next] = [await pushed(), await pushed()];
      let free = 100e9;
      const config = { policy: 'lru:1000', disk_low: '10g', disk_high: '12g' };
      const first = service(config, { free: async () => free });
      await first.ensure(old);
      free = 5e9;
      const states: string[] = [];
      const clock = {
        now: Date.now,
        sleep: (ms: number, signal: AbortSignal) => systemPullClock.sleep(Math.min(ms, 1), signal),
      };
      const low = service(config, {
        clock,
        free: async () => free,
        onDisk: (s: { open: boolean; message: string }) => {
          states.push(s.message);
          if (!s.open) free = 20e9;
        },
      });
      expect(await low.ensure(next)).toMatchObject({ pulled: true });
      expect(await engine.inspect(old)).toBeUndefined();
      expect(states).toEqual([expect.stringMatching(/^disk_full 4\.7 GiB < 10 GiB floor$/), '']);
    });
  });
});
