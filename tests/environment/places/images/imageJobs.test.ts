// The jobs of images against an engine in memory: order, dedupe, pauses, retries, policies.
import { describe, expect, test } from 'vitest';
import { EnvironmentError } from '../../../../src/environment/environment.ts';
import { rememberRecipe } from '../../../../src/environment/places/buildRecipes.ts';
import { imagesConfigSchema } from '../../../../src/environment/places/imagesConfig.ts';
import { fakeJobs, settled } from './fakeEngine.ts';

const names = (pulls: readonly { name: string }[]) => pulls.map((pull) => pull.name);
const failure = async (promise: Promise<unknown>): Promise<EnvironmentError> => {
  const error = await promise.catch((e: unknown) => e);
  if (!(error instanceof EnvironmentError)) throw new Error(`not an EnvironmentError: ${String(error)}`);
  return error;
};

describe('one pull an image', () => {
  test('four trials that ask for one image under any of its names share one pull [T-34]', async () => {
    const { ensure, pulls } = fakeJobs();
    const waiting = ['a/x', 'a/x:latest', 'docker.io/a/x', 'index.docker.io/a/x:latest'].map((i) =>
      ensure(i),
    );
    await settled();
    expect(names(pulls)).toEqual(['a/x:latest']);
    await pulls[0]!.succeed();
    for (const ready of await Promise.all(waiting))
      expect(ready).toMatchObject({ pulled: true, id: 'sha256:a/x:latest' });
  });

  test('an image that is here is not pulled; with "always" it is, once', async () => {
    const here = fakeJobs();
    here.local.set('a/x:1', here.image('a/x:1'));
    expect(await here.ensure('a/x:1')).toMatchObject({ pulled: false });
    expect(here.pulls).toEqual([]);
    const always = fakeJobs({}, { pull: 'always' });
    always.local.set('a/x:1', always.image('a/x:1'));
    const both = [always.ensure('a/x:1'), always.ensure('a/x:1')];
    await settled();
    await always.pulls[0]!.succeed();
    await Promise.all(both);
    await always.ensure('a/x:1');
    expect(always.pulls).toHaveLength(1);
  });

  test('"never" asks no registry and says how to get the image', async () => {
    const { ensure, pulls } = fakeJobs({}, { pull: 'never' });
    const error = await failure(ensure('a/x:1'));
    expect(error).toMatchObject({
      code: 'image_missing',
      sub: 'not_local',
      message: expect.stringContaining('--pull missing'),
    });
    expect(pulls).toEqual([]);
    const built = await failure(ensure('swebatch.internal/harbor:1'));
    expect(built.message).toContain('neither pulls nor builds; build it with "swebatch images build"');
    expect(built.message).not.toContain('pull it with');
  });

  test('an image that was removed since is pulled again', async () => {
    const { ensure, pulls, engine } = fakeJobs();
    const first = ensure('a/x:1');
    await settled();
    await pulls[0]!.succeed();
    await first;
    await engine.remove('a/x:1');
    const second = ensure('a/x:1');
    await settled();
    await pulls[1]!.succeed();
    expect(await second).toMatchObject({ pulled: true });
  });
});

describe('order and bounds', () => {
  test('at most so many pulls at a time, in the order in which they were asked for', async () => {
    const { ensure, pulls, jobs } = fakeJobs({ max_concurrent_pulls: 2 });
    const all = ['a/1:1', 'a/2:1', 'a/3:1'].map((image) => ensure(image));
    await settled();
    expect(names(pulls)).toEqual(['a/1:1', 'a/2:1']);
    expect(jobs.status()).toMatchObject({ active: [{ image: 'a/1:1' }, { image: 'a/2:1' }], waiting: 1 });
    await pulls[1]!.succeed();
    await settled();
    expect(names(pulls)).toEqual(['a/1:1', 'a/2:1', 'a/3:1']);
    expect(jobs.here()).toEqual(['a/2:1']);
    await pulls[0]!.succeed();
    await pulls[2]!.succeed();
    await Promise.all(all);
  });

  test('whoever waits for a pull, or for a turn, says so before and while it goes on; then nobody says anything', async () => {
    const { ensure, pulls, waits, clock } = fakeJobs({ max_concurrent_pulls: 1, tries: 2, retry_seconds: 1 });
    const both = [ensure('a/1:1'), ensure('a/2:1')];
    expect(waits.splice(0)).toEqual([]);
    await settled();
    expect(new Set(waits.splice(0))).toEqual(new Set(['a/1:1', 'a/2:1']));
    pulls[0]!.request.onEvent({ layer: 'l', status: 'Downloading', current: 1, total: 2 });
    expect(waits.splice(0)).toEqual(['a/1:1']);
    await pulls[0]!.fail('unexpected EOF');
    await settled();
    expect(new Set(waits.splice(0))).toContain('a/1:1');
    // Its turn is another image's while it waits for its second try.
    expect(names(pulls)).toEqual(['a/1:1', 'a/2:1']);
    await pulls[1]!.succeed();
    await clock.advance(1000);
    await pulls[2]!.succeed();
    await Promise.all(both);
    waits.splice(0);
    await ensure('a/1:1');
    expect(waits).toEqual([]);
  });

  test('one that is built from another that is built comes after it, also where there is one place', async () => {
    const recipe = { files: () => [], timeoutS: 60 };
    rememberRecipe('swebatch.internal/x:base', recipe);
    rememberRecipe('swebatch.internal/x:above', { ...recipe, from: 'swebatch.internal/x:base' });
    const { ensure, pulls } = fakeJobs({ max_concurrent_pulls: 1 });
    const both = [ensure('swebatch.internal/x:above'), ensure('swebatch.internal/x:base')];
    await settled();
    expect(names(pulls)).toEqual(['swebatch.internal/x:base']);
    await pulls[0]!.succeed();
    await settled();
    expect(names(pulls)).toEqual(['swebatch.internal/x:base', 'swebatch.internal/x:above']);
    await pulls[1]!.succeed();
    expect(await Promise.all(both)).toMatchObject([{ pulled: true }, { pulled: true }]);
  });

  test('an image already here does not wait behind a pull that takes long', async () => {
    const { ensure, local, image } = fakeJobs({ max_concurrent_pulls: 1, ahead: 0 });
    void ensure('a/slow:1').catch(() => {});
    await settled();
    local.set('a/here:1', image('a/here:1'));
    expect(await ensure('a/here:1')).toMatchObject({ pulled: false });
  });

  test('a trial that is stopped leaves the pull to the others', async () => {
    const { ensure, pulls } = fakeJobs();
    const stop = new AbortController();
    const [first, second] = [ensure('a/x:1', stop.signal), ensure('a/x:1')];
    await settled();
    stop.abort();
    await expect(first).rejects.toBe(stop.signal.reason);
    await pulls[0]!.succeed();
    expect(await second).toMatchObject({ pulled: true });
  });

  test('close stops what runs and what waits', async () => {
    const { ensure, jobs, pulls } = fakeJobs({ max_concurrent_pulls: 1 });
    const both = [ensure('a/1:1'), ensure('a/2:1')].map(failure);
    await settled();
    await jobs.close();
    expect((await Promise.all(both)).map((e) => e.sub)).toEqual(['interrupted', 'interrupted']);
    expect(pulls).toHaveLength(1);
  });
});

describe('a registry that says 429', () => {
  const LIMIT = 'toomanyrequests: You have reached your pull rate limit';

  test('pauses all pulls until the reset it names, and tells when that is', async () => {
    const { ensure, jobs, pulls, clock, events } = fakeJobs(
      { max_concurrent_pulls: 1 },
      { askReset: async () => 90_000 },
    );
    const both = [ensure('a/1:1'), ensure('a/2:1')];
    await settled();
    await pulls[0]!.fail(LIMIT);
    const until = clock.now() + 90_000;
    expect(events).toContainEqual({
      type: 'paused',
      reason: 'rate_limited',
      until,
      message: expect.stringContaining('docker.io'),
      registry: 'docker.io',
    });
    expect(jobs.status().paused).toEqual({ reason: 'rate_limited', until, registry: 'docker.io' });
    await clock.advance(89_999);
    expect(pulls).toHaveLength(1);
    await clock.advance(1);
    expect(names(pulls)).toEqual(['a/1:1', 'a/1:1']);
    await pulls[1]!.succeed();
    await pulls[2]!.succeed();
    await Promise.all(both);
    expect(jobs.status().paused).toBeUndefined();
  });

  test('without a reset the pause grows, and does not use up the tries', async () => {
    const { ensure, pulls, clock } = fakeJobs({ tries: 1 });
    const ready = ensure('a/1:1');
    await settled();
    for (const pause of [60_000, 120_000, 240_000]) {
      await pulls.at(-1)!.fail(LIMIT);
      const before = pulls.length;
      await clock.advance(pause - 1);
      expect(pulls).toHaveLength(before);
      await clock.advance(1);
      expect(pulls).toHaveLength(before + 1);
    }
    await pulls.at(-1)!.succeed();
    expect(await ready).toMatchObject({ pulled: true });
  });

  test('patience ends, and the error says what raises the limit', async () => {
    const { ensure, pulls, clock } = fakeJobs({ rate_limit_patience_seconds: 100 });
    const error = failure(ensure('a/1:1'));
    await settled();
    await pulls[0]!.fail(LIMIT);
    await clock.advance(60_000);
    await pulls[1]!.fail(LIMIT);
    expect(await error).toMatchObject({
      code: 'image_pull_failed',
      sub: 'rate_limited',
      message: expect.stringContaining('docker login'),
    });
  });

  test('a registry that says "now", or a moment that has passed, is not asked at once again and again', async () => {
    const { ensure, pulls, clock } = fakeJobs({}, { askReset: async () => 0 });
    const ready = ensure('a/1:1');
    await settled();
    await pulls[0]!.fail(LIMIT);
    await clock.advance(59_999);
    expect(pulls).toHaveLength(1);
    await clock.advance(1);
    await pulls[1]!.succeed();
    expect(await ready).toMatchObject({ pulled: true });
  });

  test('one that asks for more patience than there is fails every image at once, with the moment it named', async () => {
    const { ensure, pulls, clock } = fakeJobs(
      { max_concurrent_pulls: 1 },
      { askReset: async () => 86_400_000 },
    );
    const errors = ['a/1:1', 'a/2:1', 'a/3:1'].map((image) => failure(ensure(image)));
    await settled();
    const until = new Date(clock.now() + 86_400_000).toISOString();
    await pulls[0]!.fail(LIMIT);
    for (const error of await Promise.all(errors))
      expect(error).toMatchObject({ sub: 'rate_limited', message: expect.stringContaining(until) });
    expect(pulls).toHaveLength(1);
  });

  test('what another registry has comes on while one refuses, however many images wait for that one', async () => {
    const { ensure, jobs, pulls, clock } = fakeJobs(
      { max_concurrent_pulls: 1 },
      { askReset: async () => 3_600_000 },
    );
    const refused = ['a/1:1', 'a/2:1'].map((image) => ensure(image));
    await settled();
    await pulls[0]!.fail(LIMIT);
    const other = ensure('r.example/b:1');
    await settled();
    expect(names(pulls)).toEqual(['a/1:1', 'r.example/b:1']);
    await pulls[1]!.succeed();
    expect(await other).toMatchObject({ pulled: true });
    // The pause of the first is still shown, and its images come one after the other when it ends.
    expect(jobs.status()).toMatchObject({ waiting: 2, paused: { registry: 'docker.io' } });
    await clock.advance(3_600_000);
    expect(names(pulls).slice(2)).toEqual(['a/1:1']);
    await pulls[2]!.succeed();
    await settled();
    expect(names(pulls).slice(3)).toEqual(['a/2:1']);
    await pulls[3]!.succeed();
    for (const ready of await Promise.all(refused)) expect(ready.pullMs).toBe(0);
  });

  test('a mirror serves on while the registry behind it refuses, and the other way round', async () => {
    const mirrors = { 'docker.io': ['m.example'] };
    const { ensure, pulls } = fakeJobs({ mirrors }, { askReset: async () => 3_600_000 });
    const first = ensure('a/1:1');
    await settled();
    await pulls[0]!.fail('manifest unknown');
    await pulls[1]!.fail(LIMIT);
    const second = ensure('a/2:1');
    await settled();
    expect(names(pulls).slice(2)).toEqual(['m.example/a/2:1']);
    await pulls[2]!.fail(LIMIT); // both refuse now
    void first.catch(() => {});
    void second.catch(() => {});
    await settled();
    expect(pulls).toHaveLength(3);
    const other = fakeJobs({ mirrors }, { askReset: async () => 3_600_000 });
    const ready = other.ensure('a/1:1');
    await settled();
    await other.pulls[0]!.fail(LIMIT);
    expect(names(other.pulls)).toEqual(['m.example/a/1:1', 'a/1:1']);
    await other.pulls[1]!.succeed();
    expect(await ready).toMatchObject({ from: 'docker.io/a/1:1' });
  });

  test('a mirror that refuses is waited for where the registry itself cannot be reached', async () => {
    const { ensure, pulls, clock } = fakeJobs(
      { mirrors: { 'docker.io': ['m.example'] }, tries: 1 },
      { askReset: async () => 60_000 },
    );
    const ready = ensure('a/1:1');
    await settled();
    await pulls[0]!.fail(LIMIT);
    await pulls[1]!.fail('dial tcp: lookup registry-1.docker.io: no such host');
    await clock.advance(60_000);
    expect(names(pulls)).toEqual(['m.example/a/1:1', 'a/1:1', 'm.example/a/1:1']);
    await pulls[2]!.succeed();
    expect(await ready).toMatchObject({ pulled: true, from: 'm.example/a/1:1' });
  });

  test('a budget of pulls holds back the next one until the window has moved', async () => {
    const { ensure, pulls, clock, events } = fakeJobs({
      pulls_per_window: 2,
      window_seconds: 10,
      max_concurrent_pulls: 3,
    });
    for (const i of [1, 2, 3]) void ensure(`a/${i}:1`).catch(() => {});
    await settled();
    expect(pulls).toHaveLength(2);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'paused', reason: 'budget', until: clock.now() + 10_000 }),
    );
    await clock.advance(9_999);
    expect(pulls).toHaveLength(2);
    await clock.advance(1);
    expect(pulls).toHaveLength(3);
  });
});

describe('failures', () => {
  test('a broken transfer is tried again with growing waits; then it is an error', async () => {
    const { ensure, pulls, clock, events } = fakeJobs({ tries: 3, retry_seconds: 1 });
    const error = failure(ensure('a/x:1'));
    await settled();
    await pulls[0]!.fail('unexpected EOF');
    await clock.advance(1000);
    await pulls[1]!.fail('unexpected EOF');
    await clock.advance(2000);
    await pulls[2]!.fail('unexpected EOF');
    expect(await error).toMatchObject({ code: 'image_pull_failed', sub: 'interrupted' });
    expect(events.flatMap((e) => (e.type === 'retry' ? [e.waitMs] : []))).toEqual([1000, 2000]);
  });

  test('a missing image is not tried again, not even for the next trial', async () => {
    const { ensure, pulls } = fakeJobs();
    const first = failure(ensure('a/x:1'));
    await settled();
    await pulls[0]!.fail('manifest for a/x:1 not found: manifest unknown: manifest unknown');
    for (const error of [await first, await failure(ensure('a/x:1'))])
      expect(error).toMatchObject({
        code: 'image_missing',
        sub: 'missing',
        message: expect.stringContaining('a/x:1'),
      });
    expect(pulls).toHaveLength(1);
  });

  test('a name that is none never reaches the engine', async () => {
    const { ensure, pulls } = fakeJobs();
    for (const name of ['A/B:1', 'a/x:', 'a//x', '', 'a/x@sha256:12', 'a b', '-v/x'])
      expect(await failure(ensure(name))).toMatchObject({ code: 'image_missing', sub: 'wrong_name' });
    expect(pulls).toEqual([]);
  });

  test('a full disk ends the try at once', async () => {
    const { ensure, pulls } = fakeJobs();
    const error = failure(ensure('a/x:1'));
    await settled();
    await pulls[0]!.fail('write /var/lib/docker/tmp/x: no space left on device');
    expect(await error).toMatchObject({ code: 'disk_full' });
  });

  test('a pull where nothing moves is cut and called stalled', async () => {
    const { ensure } = fakeJobs({ tries: 1 }, { stallMs: 20 });
    expect(await failure(ensure('a/x:1'))).toMatchObject({
      sub: 'stalled',
      message: expect.stringContaining('nothing moved for 0.02 s'),
    });
  });
});

describe('names, mirrors, platforms', () => {
  test('mirrors come first; the image ends up under the name of the row', async () => {
    const login = { username: 'u', password: 'p', serveraddress: 'm.example' };
    const { ensure, pulls, local } = fakeJobs(
      { mirrors: { 'docker.io': ['m.example', 'n.example:5000'] } },
      { loginOf: async (registry) => (registry === 'm.example' ? login : undefined) },
    );
    const ready = ensure('swebench/x:1');
    await settled();
    expect(pulls[0]!.request).toMatchObject({
      registry: 'm.example',
      repository: 'swebench/x',
      login: { username: 'u' },
    });
    await pulls[0]!.fail('manifest unknown');
    expect(pulls[1]!.request).toMatchObject({ registry: 'n.example:5000', login: undefined });
    await pulls[1]!.succeed();
    expect(await ready).toMatchObject({
      from: 'n.example:5000/swebench/x:1',
      digest: expect.stringContaining('n.example:5000/swebench/x@'),
    });
    expect([...local.keys()]).toEqual(['swebench/x:1']);
  });

  test.each(['docker.io/swebench/', 'swebench/', 'index.docker.io/swebench/'])(
    'a prefix is rewritten however the rule and the name are spelled: %s',
    async (from) => {
      const { ensure, pulls } = fakeJobs({ rewrite: [{ from, to: 'r.example/mirror/' }] });
      void ensure('swebench/x').catch(() => {});
      void ensure('docker.io/swebench/y:1').catch(() => {});
      await settled();
      expect(names(pulls)).toEqual(['r.example/mirror/x:latest', 'r.example/mirror/y:1']);
    },
  );

  test('a rewriting that makes no name is said, and nothing is fetched from elsewhere', async () => {
    const { ensure, pulls } = fakeJobs({ rewrite: [{ from: 'swebench/', to: 'R.example/Mirror//' }] });
    expect(await failure(ensure('swebench/x'))).toMatchObject({
      sub: 'wrong_name',
      message: expect.stringContaining('images.rewrite'),
    });
    expect(pulls).toEqual([]);
  });

  test('a mirror may serve a registry below a path, with the login of its host', async () => {
    const asked: string[] = [];
    const { ensure, pulls, local } = fakeJobs(
      { mirrors: { 'docker.io': ['cache.example:8443/hub'] } },
      { loginOf: async (registry) => void asked.push(registry) },
    );
    const ready = ensure('swebench/x:1');
    await settled();
    expect(asked).toEqual(['cache.example:8443']);
    expect(pulls[0]!.request).toMatchObject({
      registry: 'cache.example:8443',
      repository: 'hub/swebench/x',
    });
    await pulls[0]!.succeed();
    expect(await ready).toMatchObject({ from: 'cache.example:8443/hub/swebench/x:1' });
    expect([...local.keys()]).toEqual(['swebench/x:1']);
    const schema = (place: string) =>
      imagesConfigSchema.safeParse({ mirrors: { 'docker.io': [place] } }).success;
    expect([schema('https://m.example'), schema('m.example/'), schema('m.example/a/b')]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('an image named by digest that came from a mirror is pulled once and found there again', async () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const mirrors = { 'docker.io': ['m.example'] };
    const { ensure, pulls, local } = fakeJobs({ mirrors });
    const first = ensure(`swebench/x@${digest}`);
    await settled();
    await pulls[0]!.succeed();
    expect(await first).toMatchObject({ heldAs: `m.example/swebench/x@${digest}` });
    await ensure(`swebench/x@${digest}`);
    expect(pulls).toHaveLength(1);
    const later = fakeJobs({ mirrors });
    for (const [name, image] of local) later.local.set(name, image);
    expect(await later.ensure(`swebench/x@${digest}`)).toMatchObject({ pulled: false });
  });

  test('a copy for another platform than the one asked for says how to get the right one', async () => {
    const { ensure, local, image } = fakeJobs({}, { platform: 'linux/arm64' });
    local.set('a/x:1', image('a/x:1'));
    expect(await failure(ensure('a/x:1'))).toMatchObject({
      sub: 'wrong_platform',
      message: expect.stringMatching(/built for linux\/amd64.*--pull always/),
    });
  });

  test('an image for another processor is said loudly, or refused', async () => {
    const loud = fakeJobs();
    const ready = loud.ensure('a/x:1');
    await settled();
    await loud.pulls[0]!.succeed('arm64');
    expect((await ready).warnings).toEqual([expect.stringMatching(/linux\/arm64.*EMULATED/)]);
    for (const [config, more] of [
      [{ allow_emulation: false }, {}],
      [{}, { platform: 'linux/amd64' }],
    ] as const) {
      const strict = fakeJobs(config, more);
      const error = failure(strict.ensure('a/x:1'));
      await settled();
      await strict.pulls[0]!.succeed('arm64');
      expect(await error).toMatchObject({
        sub: 'wrong_platform',
        message: expect.stringContaining('environment.platform'),
      });
    }
  });
});
