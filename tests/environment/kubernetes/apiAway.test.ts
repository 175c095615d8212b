// An API server that is away for a while is waited for, as an engine is: it costs no grading and leaves no pod. Here it is played; a real one is
// stopped in tests/kubernetes.
import { afterEach, expect, test, vi } from 'vitest';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import type { Cluster } from '../../../src/environment/kubernetes/cluster.ts';
import { createKubernetesFactory, pingOf } from '../../../src/environment/kubernetes/kubernetesFactory.ts';
import { podFiles } from '../../../src/environment/kubernetes/podFiles.ts';
import { podProcesses } from '../../../src/environment/kubernetes/podProcess.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { createEngineWatch } from '../../../src/environment/places/engineWatch.ts';

const waitsPassAtOnce = () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.setTimerTickMode('nextTimerAsync');
};
afterEach(() => void vi.useRealTimers());

const refused = () => Object.assign(new Error('fetch failed'), { cause: new Error('connect ECONNREFUSED') });
const owner = currentOwner('night', '1.1');

/** What runs in the pod prints this, and ends well; or its stream breaks after the first byte. */
type Exec = 'refused' | 'forbidden' | 'broken' | 'ends';

/** An API server whose streams end in this way one after the other, the last of them again and again; away until it was asked `looks` times. */
function playedApi(ways: readonly Exec[], { looks = 0, output = 'whole' } = {}) {
  let asked = 0;
  const opened: Exec[] = [];
  const exec: Cluster['exec'] = async (_address, onData) => {
    const way = ways[Math.min(opened.length, ways.length - 1)]!;
    opened.push(way);
    if (way === 'refused') throw refused();
    if (way === 'forbidden') throw new Error('Unexpected server response: 403');
    const closed = Promise.withResolvers<void>();
    setImmediate(() => {
      onData(1, Buffer.from(way === 'broken' ? output[0]! : output));
      if (way === 'ends') onData(3, Buffer.from('{"status":"Success"}'));
      closed.resolve();
    });
    return {
      ...{ send: (_data, left) => left?.(), pause: () => {}, resume: () => {}, terminate: () => {} },
      onClose: (then) => void closed.promise.then(then),
    };
  };
  const version = async () => {
    asked += 1;
    if (asked <= looks) throw refused();
    return 'v1.30.1';
  };
  const watch = createEngineWatch({ ping: version, limitMs: 0, sleep: async () => {} });
  return { opened, version, api: { cluster: { exec } as Cluster, watch } };
}

test('a stream that cannot be opened while it is away is opened when it is back', async () => {
  waitsPassAtOnce();
  const { api, opened } = playedApi(['refused', 'refused', 'ends'], { looks: 3 });
  const process = await podProcesses(api, 'p')(['true']);
  process.listen({ stdout: () => {}, stderr: () => {}, gone: () => {} });
  expect(await process.exitCode()).toBe(0);
  expect(opened).toEqual(['refused', 'refused', 'ends']);
});

test('one that is just back and does not know our rights yet is asked again', async () => {
  waitsPassAtOnce();
  const { api, opened } = playedApi(['refused', 'forbidden', 'ends'], { looks: 1 });
  await podProcesses(api, 'p')(['true']);
  expect(opened).toEqual(['refused', 'forbidden', 'ends']);
});

test('a refusal of a server that was never away is told at once', async () => {
  const { api, opened } = playedApi(['forbidden']);
  await expect(podProcesses(api, 'p')(['true'])).rejects.toThrow(
    'the stream into pod p could not be opened: Unexpected server response: 403',
  );
  expect(opened).toHaveLength(1);
});

test('a server that takes our credentials no more is not waited for: it is told at once', async () => {
  let asked = 0;
  const unknown = async (): Promise<never> => {
    asked += 1;
    throw Object.assign(new Error('HTTP-Code: 401'), { code: 401, body: '' });
  };
  const watch = createEngineWatch({
    ping: pingOf({ version: unknown }),
    limitMs: 300,
    sleep: async () => {},
  });
  const exec = async (): Promise<never> => {
    throw new Error('Unexpected server response: 401');
  };
  await expect(
    podProcesses({ cluster: { exec } as unknown as Cluster, watch }, 'p')(['true']),
  ).rejects.toThrow('the stream into pod p could not be opened: Unexpected server response: 401');
  expect(asked).toBe(1);
  const away = pingOf({ version: async () => Promise.reject(refused()) });
  await expect(away()).rejects.toThrow('fetch failed');
});

test('a file whose stream broke is read again, and written again', async () => {
  const reading = playedApi(['broken', 'refused', 'ends'], { looks: 2 });
  const files = podFiles(podProcesses(reading.api, 'p'), reading.api.watch);
  expect(Buffer.from((await files.getFile('/eval.sh'))!).toString()).toBe('whole');
  expect(reading.opened).toEqual(['broken', 'refused', 'ends']);
  const writing = playedApi(['broken', 'ends'], { output: '.' });
  await podFiles(podProcesses(writing.api, 'p'), writing.api.watch).put([
    { path: '/eval.sh', content: Buffer.from('echo'), mode: 0o755 },
  ]);
  expect(writing.opened).toEqual(['broken', 'ends']);
});

test('streams that always break are a loss of the cluster, and no failure of the prediction', async () => {
  const { api } = playedApi(['broken']);
  await expect(podFiles(podProcesses(api, 'p'), api.watch).getFile('/x')).rejects.toMatchObject({
    ...{ code: 'died', sub: 'daemon_lost' },
  });
});

/** A cluster in which nothing starts. */
function deadImages(deletePod: Cluster['deletePod']) {
  const made: string[] = [];
  const cluster: Partial<Cluster> = {
    namespace: 'evals',
    version: async () => 'v1.30.1',
    async createPod(pod) {
      made.push(pod.metadata!.name!);
      return pod;
    },
    readPod: async (name) => ({
      metadata: { name },
      status: {
        conditions: [{ type: 'PodScheduled', status: 'True' }],
        containerStatuses: [
          {
            ...{ name: 'main', image: 'a:1', imageID: '', ready: false, restartCount: 0 },
            state: { waiting: { reason: 'ErrImageNeverPull' } },
          },
        ],
      },
    }),
    eventsOf: async () => [],
    deletePod,
  };
  return { cluster: cluster as Cluster, made };
}

const config = environmentConfigSchema.parse({ environment_class: 'kubernetes', network: 'bridge' });
const request = { instanceId: 'a__a-1', image: 'a:1', owner };

test('a pod that could not be removed before the end is removed at the end, once the server is back', async () => {
  waitsPassAtOnce();
  const gone: string[] = [];
  let away = 4;
  const { cluster, made } = deadImages(async (name) => {
    if (away-- > 0) throw refused();
    gone.push(name);
  });
  const said: string[] = [];
  const factory = await createKubernetesFactory(config, {
    ...{ cluster, graceMs: 20_000, onWarning: (text: string) => said.push(text) },
  });
  await expect(factory.start(request)).rejects.toMatchObject({ code: 'image_missing' });
  await factory.close();
  expect(gone).toEqual(made);
  expect(said.at(-1)).toBe(`pod ${made[0]} is removed now`);
});

test('one that stays is named with its namespace', async () => {
  const { cluster, made } = deadImages(() => Promise.reject(refused()));
  const said: string[] = [];
  const factory = await createKubernetesFactory(config, {
    ...{ cluster, graceMs: 30, onWarning: (text: string) => said.push(text) },
  });
  await expect(factory.start(request)).rejects.toThrow();
  await factory.close();
  expect(said.at(-1)).toContain(`kubectl -n evals delete pod ${made[0]} removes it, or "swebatch clean"`);
});
