// The pure parts of image handling: names, causes, logins, budgets, what may be removed, when the disk is low.
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { canonicalName, OWN_HOST, parseReference } from '../../../../src/base/imageReference.ts';
import { isOpen } from '../../../../src/environment/places/diskMarks.ts';
import { createDiskRoom } from '../../../../src/environment/places/diskRoom.ts';
import { readDockerCliConfig } from '../../../../src/environment/places/endpoint.ts';
import { chooseEvictions } from '../../../../src/environment/places/evictImages.ts';
import { type OwnImage, openImageBook } from '../../../../src/environment/places/imageBook.ts';
import {
  orderBySharedLayers,
  planImages,
  summarizeImages,
} from '../../../../src/environment/places/imagePlan.ts';
import { imagesConfigSchema, parsePolicy } from '../../../../src/environment/places/imagesConfig.ts';
import {
  classifyPullMessage,
  PULL_FAILURES,
  pullError,
} from '../../../../src/environment/places/pullFailure.ts';
import { ownPullBook, pullProgress, pullThrottle } from '../../../../src/environment/places/pullImage.ts';
import { findLogin, type ManifestAnswer } from '../../../../src/environment/places/registry.ts';
import fc from '../../../support/property.ts';
import { fakeEngine } from './fakeEngine.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-images-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('image names', () => {
  test.each([
    ['ubuntu', 'docker.io/library/ubuntu:latest'],
    ['swebench/x:1', 'docker.io/swebench/x:1'],
    ['index.docker.io/a/b', 'docker.io/a/b:latest'],
    ['localhost/a', 'localhost/a:latest'],
    ['localhost:5000/a/b/c:v1', 'localhost:5000/a/b/c:v1'],
    [`r.example/a@sha256:${'a'.repeat(64)}`, `r.example/a@sha256:${'a'.repeat(64)}`],
    ['[::1]:5000/a', '[::1]:5000/a:latest'],
    [
      'swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest',
      'docker.io/swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest',
    ],
  ])('%s', (name, whole) => {
    const parsed = parseReference(name);
    expect(parsed.ok && canonicalName(parsed.reference)).toBe(whole);
    const again = parseReference(whole);
    expect(again.ok && canonicalName(again.reference)).toBe(whole);
  });

  test('capitals before the first slash are no host, whatever newer engines make of them', () => {
    expect(parseReference('UPPER/case')).toMatchObject({
      message: expect.stringContaining('lower case'),
    });
    expect(parseReference('Registry.example/case').ok).toBe(true);
  });

  test('nothing that is not a name gets through, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseReference(text);
        if (parsed.ok)
          expect(canonicalName(parsed.reference)).toMatch(
            /^[A-Za-z0-9[][\w.:[\]-]*\/[a-z0-9][a-z0-9._/-]*[:@][\w.:+-]+$/,
          );
      }),
      { numRuns: 2000 },
    );
  });
});

describe('causes', () => {
  test.each([
    ['toomanyrequests: You have reached your pull rate limit', 'rate_limited'],
    ['error parsing HTTP 429 response body: unexpected end of JSON input: ""', 'rate_limited'],
    ['received unexpected HTTP status: 429 Too Many Requests', 'rate_limited'],
    ['manifest for a/b:2 not found: manifest unknown: manifest unknown', 'missing'],
    [
      'pull access denied for a/b, repository does not exist or may require docker login: denied: x',
      'no_access',
    ],
    ['error parsing HTTP 403 response body: unexpected end of JSON input: ""', 'no_access'],
    ['unauthorized: authentication required', 'no_access'],
    ['no matching manifest for linux/arm64/v8 in the manifest list entries', 'wrong_platform'],
    ['invalid reference format', 'wrong_name'],
    ['failed to register layer: write /x: no space left on device', 'disk_full'],
    ['unexpected EOF', 'interrupted'],
    ['filesystem layer verification failed for digest sha256:1', 'interrupted'],
    ['received unexpected HTTP status: 503 Service Unavailable', 'unreachable'],
    ['Get "https://r/v2/": dial tcp: lookup r: no such host', 'unreachable'],
    ['Get "https://r/v2/": net/http: TLS handshake timeout', 'unreachable'],
    ['unexpected status from HEAD request to https://r/v2/a/manifests/1: 403 Forbidden', 'no_access'],
    ['failed to do request: unexpected status code https://r/v2/x: 429 Too Many Requests', 'rate_limited'],
    ['unexpected status from GET request to https://r/v2/a: 502 Bad Gateway', 'unreachable'],
    ['failed to resolve reference "r.example/a:1": r.example/a:1: not found', 'missing'],
    ['no match for platform in manifest: not found', 'wrong_platform'],
    [
      'image with reference a was found but does not provide the specified platform (linux/arm64)',
      'wrong_platform',
    ],
    [
      'failed commit on ref "layer-sha256:1": unexpected commit digest sha256:2, expected sha256:1',
      'interrupted',
    ],
    ['lookup r.example on 127.0.0.53:53: server misbehaving', 'unreachable'],
    ['something new', 'unknown'],
  ] as const)('%s', (message, kind) => {
    expect(classifyPullMessage(message)).toBe(kind);
  });

  test('every cause names the image and a fix that differs from the others', () => {
    const facts = {
      image: 'r.example/a:1',
      registry: 'r.example',
      hasCredentials: false,
      engineMessage: 'words',
    };
    const kinds = Object.keys(PULL_FAILURES) as (keyof typeof PULL_FAILURES)[];
    const errors = kinds.map((kind) => pullError(kind, facts));
    for (const error of errors) expect(error.message).toContain('r.example/a:1');
    expect(new Set(errors.map((e) => e.evidence.fix))).toHaveLength(kinds.length);
  });
});

describe('logins', () => {
  const auth = (text: string) => ({ auth: Buffer.from(text).toString('base64') });
  const config = (value: unknown) => {
    writeFileSync(join(dir, 'config.json'), JSON.stringify(value));
    return readDockerCliConfig(dir).config;
  };
  const noHelper = () => Promise.reject(new Error('must not run'));

  test.each([
    [
      'docker.io',
      { 'https://index.docker.io/v1/': auth('u:p:w') },
      { username: 'u', password: 'p:w', serveraddress: 'https://index.docker.io/v1/' },
    ],
    ['r.example:5000', { 'r.example:5000': auth('u:p') }, { username: 'u', password: 'p' }],
    ['r.example', { 'https://r.example/v2/': auth('u:p') }, { username: 'u' }],
    ['r.example', { 'r.example': { ...auth('u:'), identitytoken: 't' } }, { identitytoken: 't' }],
    ['r.example', { 'r.example.evil': auth('u:p') }, undefined],
    ['r.example', { 'r.example': {} }, undefined],
  ])('of %s in %j', async (registry, auths, login) => {
    const found = await findLogin(config({ auths }), registry, noHelper);
    if (login) expect(found).toMatchObject(login);
    else expect(found).toBeUndefined();
  });

  test('the helper of a registry goes before the general one, and both before auths', async () => {
    const asked: string[] = [];
    const run = async (helper: string, server: string) => {
      asked.push(`${helper} ${server}`);
      return helper === 'empty'
        ? ''
        : JSON.stringify({ Username: helper === 'tok' ? '<token>' : 'h', Secret: 's' });
    };
    const all = config({
      auths: { 'r.example': auth('a:b') },
      credHelpers: { 'r.example': 'tok' },
      credsStore: 'empty',
    });
    expect(await findLogin(all, 'r.example', run)).toEqual({
      identitytoken: 's',
      serveraddress: 'r.example',
    });
    expect(await findLogin(all, 'docker.io', run)).toBeUndefined();
    expect(asked).toEqual(['tok r.example', 'empty https://index.docker.io/v1/']);
  });

  test('a helper that fails is said, and auths still serve; a name that could be a command is not run', async () => {
    const warnings: string[] = [];
    const broken = config({ auths: { 'r.example': auth('a:b') }, credsStore: 'gone' });
    const found = await findLogin(
      broken,
      'r.example',
      () => Promise.reject(new Error('ENOENT')),
      (w) => warnings.push(w),
    );
    expect(found).toMatchObject({ username: 'a' });
    expect(warnings).toEqual([expect.stringContaining('docker-credential-gone')]);
    expect(await findLogin(config({ credsStore: '../x; touch y' }), 'r.example', noHelper)).toBeUndefined();
  });

  test('an unreadable config is a warning, not a silent pull without login', () => {
    writeFileSync(join(dir, 'config.json'), '{');
    expect(readDockerCliConfig(dir).warning).toContain('config.json');
    expect(readDockerCliConfig(join(dir, 'none'))).toEqual({ config: expect.anything() });
  });
});

describe('removing', () => {
  const image = (name: string, usedAt: number, bytes = 10e9): OwnImage => ({
    image: name,
    id: `id-${name}`,
    bytes,
    pulledAt: 0,
    usedAt,
  });
  const facts = (own: OwnImage[], more = {}) => ({
    own,
    idOf: (name: string): string | undefined => `id-${name}`,
    needed: new Set<string>(),
    inUse: new Set<string>(),
    ...more,
  });
  const names = (list: readonly OwnImage[]) => list.map((i) => i.image);

  test('least recently used goes first, only as much as the policy asks', () => {
    const own = [image('new', 3), image('old', 1), image('mid', 2)];
    expect(names(chooseEvictions(parsePolicy('lru:20'), facts(own)))).toEqual(['old']);
    expect(names(chooseEvictions(parsePolicy('lru:30'), facts(own)))).toEqual([]);
    expect(names(chooseEvictions(parsePolicy('lru:30'), facts(own), 11e9))).toEqual(['old', 'mid']);
    expect(names(chooseEvictions(parsePolicy('remove-after'), facts(own)))).toEqual(['old', 'mid', 'new']);
    expect(chooseEvictions(parsePolicy('keep'), facts(own), 1e12)).toEqual([]);
  });

  test('never what is needed, in use, replaced or gone', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.record({ name: fc.string({ minLength: 1 }), at: fc.nat(), fate: fc.nat(4) }), {
          selector: (r) => r.name,
        }),
        fc.constantFrom('remove-after', 'lru:0', 'keep'),
        (list, policy) => {
          const own = list.map(({ name, at }) => image(name, at));
          const fates = new Map(list.map(({ name, fate }) => [name, fate]));
          const chosen = chooseEvictions(
            parsePolicy(policy),
            facts(own, {
              needed: new Set(list.filter((r) => r.fate === 1).map((r) => r.name)),
              inUse: new Set(list.filter((r) => r.fate === 2).map((r) => `id-${r.name}`)),
              idOf: (name: string) =>
                fates.get(name) === 3 ? 'other' : fates.get(name) === 4 ? undefined : `id-${name}`,
            }),
          );
          for (const { image: name } of chosen) expect(fates.get(name)).toBe(0);
          if (policy === 'keep') expect(chosen).toEqual([]);
        },
      ),
    );
  });

  test('the book remembers across processes what is ours and what living ones need', async () => {
    const path = join(dir, 'images.jsonl');
    const liveness = (name: string) => (name === '13' ? 'dead' : 'alive');
    const [a, b, dead] = ['11', '12', '13'].map((name) => openImageBook(dir, { name, liveness }));
    await a!.pulled({ engine: 'E', image: 'x', id: '1', bytes: 5, at: 10 });
    await b!.pulled({ engine: 'E', image: 'y', id: '2', bytes: 6, at: 20 });
    await b!.pulled({ engine: 'OTHER', image: 'z', id: '3', bytes: 6, at: 20 });
    await b!.used({ engine: 'E', image: 'x', at: 30 });
    await b!.removed({ engine: 'E', image: 'y', at: 40 });
    writeFileSync(path, '{"event":"pulled","engine":"E","ima\n', { flag: 'a' });
    expect(await a!.own('E')).toEqual([{ image: 'x', id: '1', bytes: 5, pulledAt: 10, usedAt: 30 }]);
    await a!.need(['x', 'q']);
    await dead!.need(['d']);
    expect(await b!.needed()).toEqual(new Set(['x', 'q']));
    expect(readdirSync(join(dir, 'needed'))).toEqual(['11']);
    await a!.need([]);
    expect(await b!.needed()).toEqual(new Set());
  });

  test('a process of another machine counts as living for a week; a half-written list as none', async () => {
    const mine = openImageBook(dir);
    await mine.need(['mine']);
    const far = openImageBook(dir, { name: '7-123-boot@elsewhere', liveness: () => 'alive' });
    await far.need(['far']);
    writeFileSync(join(dir, 'needed', '.x.7-1.tmp'), 'half');
    expect(await mine.needed()).toEqual(new Set(['mine', 'far']));
    const longAgo = Date.now() / 1000 - 8 * 24 * 3600;
    utimesSync(join(dir, 'needed', '7-123-boot@elsewhere'), longAgo, longAgo);
    expect(await mine.needed()).toEqual(new Set(['mine']));
  });

  test('what is needed under one spelling is not removed under another', async () => {
    const own = ['a/x', 'r.example/y:1', `r.example/z@sha256:${'b'.repeat(64)}`].map((name) =>
      image(name, 1),
    );
    const needed = new Set([
      'docker.io/a/x:latest',
      'r.example/y:1',
      `m.example/hub/z@sha256:${'b'.repeat(64)}`,
    ]);
    expect(chooseEvictions(parsePolicy('remove-after'), facts(own, { needed }))).toEqual([]);
    const book = openImageBook(dir);
    await book.pulled({ engine: 'E', image: 'a/x', id: '1', bytes: 5, digest: 'a/x@d', at: 10 });
    await book.used({ engine: 'E', image: 'docker.io/a/x:latest', at: 30 });
    expect(await book.own('E')).toMatchObject([{ image: 'a/x', usedAt: 30, digest: 'a/x@d' }]);
    await book.removed({ engine: 'E', image: 'index.docker.io/a/x', at: 40 });
    expect(await book.own('E')).toEqual([]);
  });

  test('remove-after takes the images of the run; those fetched for other runs only where room is short', () => {
    const own = [image('old-night', 1), image('mine', 2), image('new-night', 3)];
    const among = { among: ['mine', 'not-here'] };
    const after = parsePolicy('remove-after');
    expect(names(chooseEvictions(after, facts(own, among)))).toEqual(['mine']);
    expect(names(chooseEvictions(after, facts(own, among), 10e9))).toEqual(['mine']);
    expect(names(chooseEvictions(after, facts(own, among), 11e9))).toEqual(['mine', 'old-night']);
    // "gc" is about all of them; lru is about how much is kept.
    expect(names(chooseEvictions(after, facts(own)))).toEqual(['old-night', 'mine', 'new-night']);
    expect(names(chooseEvictions(parsePolicy('lru:20'), facts(own, among)))).toEqual(['old-night']);
  });
});

describe('disk', () => {
  test('two marks: it closes below the low one and opens above the high one', () => {
    const states: boolean[] = [];
    let open = true;
    for (const free of [20, 10, 9, 12, 14, 15, 12, 10, 9]) {
      open = isOpen(open, free, 10, 15);
      states.push(open);
    }
    expect(states).toEqual([true, true, false, false, false, true, true, true, false]);
    expect(isOpen(false, undefined, 10, 15)).toBe(true);
  });

  test('waits while low, asks for room each time, tells both changes once, and ends with the signal', async () => {
    let free = 5;
    const asked: number[] = [];
    const changes: string[] = [];
    const stop = new AbortController();
    const gate = createDiskRoom({
      free: async () => free,
      lowBytes: 10,
      highBytes: 15,
      makeRoom: async (missing) => void asked.push(missing),
      onChange: (state) => changes.push(state.message || 'open'),
      clock: {
        sleep: async () => {
          free += 4;
        },
      },
    });
    await gate.pass(stop.signal);
    expect(asked).toEqual([10, 6, 2]);
    expect(changes).toEqual([expect.stringMatching(/^disk_full/), 'open']);
    free = 1;
    stop.abort();
    await gate.pass(stop.signal);
  });

  test('sizes and policies that are none are refused by the schema', () => {
    for (const bad of [{ disk_low: 'much' }, { policy: 'lru' }, { policy: 'lru:x' }, { mirror: {} }])
      expect(imagesConfigSchema.safeParse(bad).success).toBe(false);
  });
});

describe('plan', () => {
  test('shared layers are counted once and unknown images named', () => {
    const layer = (digest: string, size: number) => ({ digest, size });
    const plan = summarizeImages([
      { image: 'a', state: 'to_pull', layers: [layer('base', 100), layer('a', 1)], problem: undefined },
      { image: 'b', state: 'to_pull', layers: [layer('base', 100), layer('b', 2)], problem: undefined },
      { image: 'c', state: 'here', layers: [], problem: undefined },
      { image: 'd', state: 'unknown', layers: [], problem: 'why' },
    ]);
    expect(plan).toMatchObject({
      here: 1,
      toPull: 2,
      downloadBytes: 103,
      unknown: [{ image: 'd', problem: 'why' }],
    });
  });

  test('a registry that cannot be reached is given up, and what another registry has is still asked for', async () => {
    const { engine } = fakeEngine();
    const asked: string[] = [];
    const manifestOf = async (image: string): Promise<ManifestAnswer> => {
      asked.push(image);
      return image.startsWith('up.example/')
        ? { ok: true, digest: 'd', platforms: [], layers: [{ digest: image, size: 7 }] }
        : { ok: false, status: 0, retryAfterMs: undefined, message: 'getaddrinfo ENOTFOUND' };
    };
    const down = Array.from({ length: 9 }, (_, i) => `down.example/a:${i}`);
    const plan = await planImages([...down, 'up.example/b:1'], engine, manifestOf, { parallel: 1 });
    expect(asked).toEqual([...down.slice(0, 3), 'up.example/b:1']);
    expect(plan).toMatchObject({ toPull: 1, downloadBytes: 7 });
    expect(new Set(plan.unknown.map((u) => u.problem))).toEqual(new Set(['down.example cannot be reached']));
  });

  test('a registry that refuses is not asked again: each question would put its reset off', async () => {
    const { engine } = fakeEngine();
    const asked: string[] = [];
    const manifestOf = async (image: string): Promise<ManifestAnswer> => {
      asked.push(image);
      return { ok: false, status: 429, retryAfterMs: 1000, message: 'the registry answers 429' };
    };
    const images = Array.from({ length: 9 }, (_, i) => `r.example/a:${i}`);
    const plan = await planImages(images, engine, manifestOf, { parallel: 1 });
    expect(asked).toEqual(['r.example/a:0']);
    expect(new Set(plan.unknown.map((u) => u.problem))).toEqual(new Set(['the registry answers 429']));
    expect(plan.unknown).toHaveLength(9);
  });

  test('where a question counts as a pull, a sample spread over the images stands for all', async () => {
    const { engine } = fakeEngine();
    const asked: string[] = [];
    const manifestOf = async (image: string): Promise<ManifestAnswer> => {
      asked.push(image);
      return { ok: true, digest: 'd', platforms: [], layers: [{ digest: image, size: 10 }] };
    };
    const images = Array.from({ length: 500 }, (_, i) => `swebench/a:${i}`);
    const plan = await planImages([...images, 'r.example/b:1'], engine, manifestOf, {
      parallel: 1,
      costly: (image) => image.startsWith('swebench/'),
    });
    expect(asked).toHaveLength(21);
    expect(asked.slice(0, 3)).toEqual(['swebench/a:0', 'swebench/a:25', 'swebench/a:50']);
    expect(plan).toMatchObject({ toPull: 501, estimated: 480, downloadBytes: 5010, unknown: [] });
    const few = await planImages(images.slice(0, 20), engine, manifestOf, { costly: () => true });
    expect(few).toMatchObject({ toPull: 20, estimated: 0 });
  });

  test('what a slow registry has not said in time is not known', async () => {
    const { engine } = fakeEngine();
    const manifestOf = () => Promise.reject(new Error('must not be asked'));
    const plan = await planImages(['r.example/a:1'], engine, manifestOf, { signal: AbortSignal.abort() });
    expect(plan.unknown).toEqual([{ image: 'r.example/a:1', problem: 'r.example answers too slowly' }]);
  });

  test('images that a sample stands for are not known either when their registry cannot be reached', async () => {
    const { engine } = fakeEngine();
    const silent = async (): Promise<ManifestAnswer> => ({
      ok: false,
      status: 0,
      retryAfterMs: undefined,
      message: 'getaddrinfo ENOTFOUND',
    });
    const many = Array.from({ length: 100 }, (_, i) => `down.example/a:${i}`);
    const plan = await planImages(many, engine, silent, { costly: () => true });
    expect(plan).toMatchObject({ here: 0, toPull: 0, estimated: 0 });
    expect(plan.unknown).toHaveLength(100);
  });

  test('ordering keeps all items, and each shared base in one piece', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 }), { maxLength: 30 }),
        (lists) => {
          const items = lists.map((layers, i) => ({ layers, i }));
          const ordered = orderBySharedLayers(items, (item) => item.layers);
          expect(ordered.toSorted((x, y) => x.i - y.i)).toEqual(items);
          if (items.length <= 2) return;
          const bases = ordered.map((item) => item.layers[0]);
          const runs = bases.filter((base, i) => base !== bases[i - 1]);
          expect(new Set(runs)).toHaveLength(runs.length);
        },
      ),
    );
  });
});

describe('throttle and progress', () => {
  test('in no window of the length of the budget begin more pulls than it allows', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(2000), { maxLength: 60 }),
        fc.integer({ min: 1, max: 5 }),
        (gaps, pulls) => {
          const throttle = pullThrottle({ pulls, windowMs: 1000 });
          const begun: number[] = [];
          let now = 0;
          for (const gap of gaps) {
            now += gap;
            const wait = throttle.take('r', now);
            now += wait;
            if (wait > 0) expect(throttle.take('r', now)).toBe(0);
            begun.push(now);
          }
          for (const [i, at] of begun.entries())
            if (i >= pulls) expect(at - begun[i - pulls]!).toBeGreaterThanOrEqual(1000);
        },
      ),
    );
  });

  test('each registry has a budget of its own, and engines with one book have one budget', () => {
    const book = ownPullBook();
    const [a, b] = [1, 2].map(() => pullThrottle({ pulls: 2, windowMs: 1000, book }));
    expect([a!.take('hub', 0), b!.take('hub', 10), a!.take('hub', 20), b!.take('hub', 30)]).toEqual([
      0, 0, 980, 970,
    ]);
    expect(b!.take('quay', 40)).toBe(0);
    expect([b!.take('hub', 1000), a!.take('hub', 1000)]).toEqual([0, 10]);
    expect(pullThrottle({ pulls: 2, windowMs: 1000 }).take('hub', 1001)).toBe(0);
  });

  test('a later refusal never shortens the pause', () => {
    const throttle = pullThrottle({ pulls: 0, windowMs: 1 });
    throttle.refuse('r', 0, 10_000);
    throttle.refuse('r', 0, 1_000);
    expect(throttle.refusedUntil('r', 5_000)).toBe(10_000);
    expect(throttle.refusedUntil('other', 5_000)).toBeUndefined();
    expect(throttle.refusedUntil('r', 10_000)).toBeUndefined();
  });

  test('refusals side by side are one; each later one doubles the pause; what came through starts anew', () => {
    const throttle = pullThrottle({ pulls: 0, windowMs: 1 });
    expect([throttle.refuse('r', 0, undefined), throttle.refuse('r', 5, undefined)]).toEqual([
      60_000, 60_000,
    ]);
    expect(throttle.refuse('r', 60_000, 0)).toBe(180_000);
    throttle.succeed('r');
    expect(throttle.refuse('r', 200_000, -3)).toBe(260_000);
  });

  test('lines that only repeat are no progress', () => {
    const progress = pullProgress();
    expect(progress.add({ layer: 'l', status: 'Pulling fs layer' })).toBe(true);
    expect(progress.add({ layer: 'l', status: 'Downloading', current: 5, total: 10 })).toBe(true);
    expect(progress.add({ layer: 'l', status: 'Retrying in 5 seconds' })).toBe(false);
    expect(progress.now()).toEqual({ downloadedBytes: 5, totalBytes: 10, layersDone: 0, layers: 1 });
    progress.add({ layer: 'l', status: 'Download complete' });
    progress.add({ layer: 'l', status: 'Pull complete' });
    expect(progress.now()).toEqual({ downloadedBytes: 10, totalBytes: 10, layersDone: 1, layers: 1 });
  });
});

test('an end state that is gone is no matter of a Dockerfile', () => {
  const facts = { registry: OWN_HOST, hasCredentials: false, engineMessage: 'the build failed' };
  const said = (image: string) => pullError('build_failed', { ...facts, image }).message;
  expect(said('swebatch.internal/work:abc')).toContain('only a new attempt has another');
  expect(said('swebatch.internal/work:abc')).not.toContain('Dockerfile');
  expect(said('swebatch.internal/harbor:abc')).toContain('correct its Dockerfile');
  // Its base image cannot be asked for: no line of its Dockerfile is wrong.
  const engineMessage =
    'the build failed: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host. The end of its log: Step 1/2';
  const offline = pullError('build_failed', {
    ...facts,
    engineMessage,
    image: 'swebatch.internal/harbor:abc',
  });
  expect(offline.message).toContain('a registry that its Dockerfile names does not answer');
  expect(offline.message).not.toContain('correct its Dockerfile');
});
