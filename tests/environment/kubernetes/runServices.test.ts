// Who waits for whom among the services of a pod, against a played cluster: a service has its image when those before it are so far.
import { expect, test } from 'vitest';
import type { Services } from '../../../src/base/services.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import type { Cluster } from '../../../src/environment/kubernetes/cluster.ts';
import { serviceContainers, WAITS } from '../../../src/environment/kubernetes/podServices.ts';
import type { PodShared } from '../../../src/environment/kubernetes/podShared.ts';
import { servicesOfPod } from '../../../src/environment/kubernetes/runServices.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { createEngineWatch } from '../../../src/environment/places/engineWatch.ts';
import { readCompose } from '../../../src/suites/harbor/compose.ts';

const FILE = `services:
  db: { image: db, healthcheck: { test: [CMD, ready], interval: 50ms, retries: 3 } }
  seed: { image: seed, depends_on: [db] }
  web:
    image: web
    depends_on:
      db: { condition: service_healthy }
      seed: { condition: service_completed_successfully }
`;

const waits = { waiting: { reason: 'InvalidImageName', message: `couldn't parse "${WAITS}"` } };
const ended = (exitCode: number) => ({ terminated: { exitCode, reason: 'Error' } });
const runs = { running: {} };

/** `states`: of each service, one after the other; `checks`: exit codes of the health check, the last of them again and again. */
function played({
  states = {},
  checks = [0],
}: {
  states?: Readonly<Record<string, readonly object[]>>;
  checks?: readonly number[];
}) {
  const read = readCompose(FILE, {
    files: new Set(),
    taskHas: () => true,
    image: 'task:1',
    env: {},
  });
  if (!read.ok) throw new Error(read.reasons.join());
  const { services: found, images } = read.compose;
  const services: Services = {
    ...found!,
    containers: found!.containers.map((one) => ({ ...one, image: images.get(one.name)!.image! })),
  };
  const said: string[] = [];
  const looked = new Map<string, number>();
  const containers = [...serviceContainers(services)];
  const cluster: Partial<Cluster> = {
    version: async () => 'v1.30.1',
    readPod: async () => ({
      metadata: { name: 'p' },
      status: {
        conditions: [{ type: 'PodScheduled', status: 'True' }] as never,
        containerStatuses: containers.map(([service, name]) => {
          const all = states[service] ?? [runs];
          const at = looked.get(service) ?? 0;
          looked.set(service, at + 1);
          const named = said.includes(`image ${service}`) || service !== 'web';
          return { name, state: named ? all[Math.min(at, all.length - 1)] : waits };
        }) as never,
      },
    }),
    setImage: async (_pod, container, image) => {
      expect(new Map(containers).get(image)).toBe(container);
      said.push(`image ${image}`);
    },
    logOf: async (_pod, container) => `log of ${container}\n`,
    exec: async ({ argv, container }, onData) => {
      const code = checks[Math.min(said.filter((one) => one.startsWith('check')).length, checks.length - 1)]!;
      said.push(`check ${argv.join(' ')} in ${container}: ${code}`);
      const closed = Promise.withResolvers<void>();
      setImmediate(() => {
        const causes = [{ reason: 'ExitCode', message: String(code) }];
        onData(1, Buffer.from('not yet'));
        onData(3, Buffer.from(JSON.stringify(code === 0 ? { status: 'Success' } : { details: { causes } })));
        closed.resolve();
      });
      return {
        ...{ send: (_data, left) => left?.(), pause: () => {}, resume: () => {}, terminate: () => {} },
        onClose: (then) => void closed.promise.then(then),
      };
    },
  };
  const shared = {
    cluster: cluster as Cluster,
    config: environmentConfigSchema.parse({ environment_class: 'kubernetes' }),
    watch: createEngineWatch({ ping: cluster.version!, limitMs: 0, sleep: async () => {} }),
  } as PodShared;
  const request = { instanceId: 'shop', image: 'task:1', owner: currentOwner('night', '1.1') };
  return { said, services: servicesOfPod(shared, request, 'p', services) };
}

test('one that waits is begun when the others are healthy and done, and all are ready then', async () => {
  const { services, said } = played({
    states: { seed: [runs, runs, runs, ended(0)], web: [waits, runs] },
    checks: [1, 1, 0],
  });
  await services.ready();
  expect(said).toEqual([
    ...[1, 1, 0].map((code) => `check ready in swebatch-service-0-db: ${code}`),
    'image web',
  ]);
  await services.check();
  expect(await services.logs()).toContainEqual({ service: 'db', text: 'log of swebatch-service-0-db\n' });
});

test('one that stays unhealthy is told with its check and its log, and what waits for it is not begun', async () => {
  const { services, said } = played({ checks: [7] });
  await expect(services.ready()).rejects.toMatchObject({
    code: 'start_failed',
    fromWithin: false,
    message:
      'the service db of shop is unhealthy: its check ended with exit code 7, and said: not yet. Its last output: log of swebatch-service-0-db',
  });
  expect(said).not.toContain('image web');
});

test.each([
  [{ seed: [ended(3)] }, 'the service seed of shop ended with exit code 3'],
  [{ db: [ended(0)] }, 'the service db of shop is not running: it ended with exit code 0'],
  [
    { seed: [ended(0)], web: [{ terminated: { exitCode: 137, reason: 'OOMKilled' } }] },
    'the service web of shop is not running: it ended with exit code 137, out of memory',
  ],
])('one that ended is told: %j', async (states, message) => {
  await expect(played({ states }).services.ready()).rejects.toThrow(message);
});

test('one that ends after it was ready is told before the agent begins', async () => {
  const { services } = played({ states: { seed: [ended(0)], db: [runs, runs, runs, runs, runs, ended(1)] } });
  await services.ready();
  await expect
    .poll(() => services.check().then(() => '', String), { timeout: 120_000 })
    .toContain('service db');
});
