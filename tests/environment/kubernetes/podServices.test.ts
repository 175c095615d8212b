// A task of several containers as one pod: what each service is in the manifest, and what one pod cannot give, refused by name.
import { describe, expect, test } from 'vitest';
import type { ContainerNeeds } from '../../../src/base/containerNeeds.ts';
import type { Services } from '../../../src/base/services.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { clusterConfigSchema } from '../../../src/environment/kubernetes/clusterConfig.ts';
import { kubernetes } from '../../../src/environment/kubernetes/kubernetes.ts';
import { stateOfPod, stateOfService } from '../../../src/environment/kubernetes/podFaults.ts';
import { podManifest } from '../../../src/environment/kubernetes/podManifest.ts';
import {
  serviceContainers,
  serviceRefusals,
  WAITS,
  waitingServices,
  withServices,
} from '../../../src/environment/kubernetes/podServices.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { readCompose } from '../../../src/suites/harbor/compose.ts';

/** As a task has them; an image that is not named is `built`. */
function servicesIn(file: string): Services {
  const read = readCompose(file, {
    files: new Set(['web/Dockerfile', 'conf/db.py']),
    taskHas: () => true,
    image: 'task:1',
    env: {},
  });
  if (!read.ok) throw new Error(read.reasons.join('; '));
  const { services, images } = read.compose;
  const containers = services!.containers.map((one) => ({
    ...one,
    image: images.get(one.name)!.image ?? 'built',
  }));
  return { ...services!, containers };
}
const refusalsOf = (file: string, more: ContainerNeeds = {}) =>
  serviceRefusals({ network: 'none', ...more, services: servicesIn(file) }, 'none');

function podOf(file: string, { config = {}, cluster = {} }: { config?: object; cluster?: object } = {}) {
  const parts = {
    ...{ name: 'swebatch-x-1', image: 'task:1', quietEnv: true, now: new Date(0) },
    config: environmentConfigSchema.parse({ environment_class: 'kubernetes', ...config }),
    cluster: clusterConfigSchema.parse(cluster),
    request: { owner: currentOwner('night 1', '3.1'), instanceId: 'shop' },
  };
  const spec = withServices(podManifest(parts), servicesIn(file), parts).spec!;
  const find = (name: string) => spec.containers.find((one) => one.name.endsWith(name))!;
  return { spec, find };
}

const SHOP = `services:
  main:
    depends_on: { web: { condition: service_healthy } }
    volumes: [shared:/shared:ro]
  web:
    build: web
    entrypoint: ["/serve", "$$(HOME)"]
    command: [--port, "8000"]
    depends_on:
      db: { condition: service_healthy }
    environment: { PRICE: "$$(HOME) $$5" }
    networks: { default: { aliases: [Shop.example] } }
    healthcheck: { test: "true", interval: 1s }
    user: "1000:1001"
    mem_limit: 64m
    cpus: 0.5
    read_only: true
    tmpfs: ["/run/web:size=1m"]
    shm_size: 32m
    cap_drop: [ALL]
    cap_add: [CHOWN]
    ports: ["127.0.0.1:9000:8000"]
  db:
    image: postgres:17
    command: []
    expose: ["5432"]
    volumes: ["data:/data", "shared:/shared"]
    healthcheck: { test: ["CMD", "pg_isready"] }
volumes: { shared: , data: }
`;

describe('services in a pod', () => {
  test('are containers with their own program, user, limits and volumes, and with the rights of main', () => {
    const { spec, find } = podOf(SHOP, { config: { memory: '2g', cpus: 2, disk: '1g' } });
    expect(spec.containers.map(({ name, image }) => [name, image])).toEqual([
      ['main', 'task:1'],
      ['swebatch-service-0-db', 'postgres:17'],
      // It is named when the store is healthy.
      ['swebatch-service-1-web', WAITS],
    ]);
    const web = find('web');
    expect(web).toMatchObject({
      command: ['/serve', '$$(HOME)'],
      args: ['--port', '8000'],
      env: [{ name: 'PRICE', value: '$$(HOME) $$5' }],
      resources: {
        limits: { memory: String(64 * 2 ** 20), cpu: '500m', 'ephemeral-storage': String(2 ** 30) },
        requests: { memory: String(64 * 2 ** 20), cpu: '100m' },
      },
      securityContext: {
        ...{ seccompProfile: { type: 'RuntimeDefault' }, privileged: false, allowPrivilegeEscalation: false },
        ...{ runAsUser: 1000, runAsGroup: 1001, readOnlyRootFilesystem: true },
        capabilities: { drop: ['ALL'], add: ['CHOWN'] },
      },
    });
    const db = find('db');
    expect(db.command).toBeUndefined();
    expect(db.resources!.limits).toMatchObject({ memory: String(2 * 2 ** 30), cpu: '2000m' });
    expect(db.volumeMounts).toEqual([
      { name: 'swebatch-volume-1', mountPath: '/data' },
      { name: 'swebatch-volume-0', mountPath: '/shared' },
    ]);
    expect(find('main').volumeMounts).toEqual([
      { name: 'swebatch-volume-0', mountPath: '/shared', readOnly: true },
    ]);
    expect(web.volumeMounts!.map(({ mountPath }) => mountPath)).toEqual(['/run/web', '/dev/shm']);
    expect(spec.volumes!.map(({ emptyDir }) => emptyDir)).toEqual([
      ...[{}, {}],
      { medium: 'Memory', sizeLimit: String(2 ** 20) },
      { medium: 'Memory', sizeLimit: String(32 * 2 ** 20) },
    ]);
  });

  test('are reached by their names on the one address of the pod', () => {
    expect(podOf(SHOP).spec.hostAliases).toEqual([
      { ip: '127.0.0.1', hostnames: ['main', 'db', 'web', 'shop.example'] },
    ]);
  });

  test('have volumes that begin with what their images have there, by root and before anything else', () => {
    const fill = podOf(SHOP).spec.initContainers!;
    expect(fill.map(({ name, image, args }) => [name, image, args])).toEqual([
      ['swebatch-fill-service-0-db', 'postgres:17', []],
      ['swebatch-fill-main', 'task:1', []],
    ]);
    expect(fill[0]!.command!.slice(-4)).toEqual([
      ...['/data', '/swebatch-volumes/0', '/shared', '/swebatch-volumes/1'],
    ]);
    expect(fill[0]!.securityContext).toMatchObject({ runAsUser: 0, allowPrivilegeEscalation: false });
  });

  test('keep what a template asks of main: its narrower rights, and its hosts', () => {
    const template = {
      spec: {
        hostAliases: [{ ip: '10.0.0.1', hostnames: ['mirror'] }],
        containers: [
          { name: 'main', securityContext: { runAsNonRoot: true, capabilities: { drop: ['NET_RAW'] } } },
          { name: 'beside', image: 'b' },
        ],
      },
    };
    const { spec, find } = podOf(SHOP, { cluster: { pod_template: template } });
    expect(find('web').securityContext).toMatchObject({
      runAsNonRoot: true,
      capabilities: { drop: ['NET_RAW', 'ALL'], add: ['CHOWN'] },
    });
    expect(spec.hostAliases).toHaveLength(2);
    expect(spec.containers.map(({ name }) => name)).toEqual([
      ...['main', 'beside', 'swebatch-service-0-db', 'swebatch-service-1-web'],
    ]);
  });

  test('wait for us where another must be healthy or done first, and for their place in the list elsewhere', () => {
    const services = servicesIn(`services:
  a: { image: x }
  b: { image: x, depends_on: [a] }
  c: { image: x, depends_on: { b: { condition: service_completed_successfully } } }
  d: { image: x, depends_on: [c, main] }
`);
    expect([...waitingServices(services)]).toEqual(['c', 'd']);
    expect([...serviceContainers(services)]).toContainEqual(['a', 'swebatch-service-0-a']);
  });

  test('are called by names of our own, whatever the file calls them', () => {
    const { spec } = podOf(
      'services: { Main.: { image: x }, swebatch-relay: { image: x }, "0": { image: x } }\n',
    );
    const names = spec.containers.map(({ name }) => name);
    expect(new Set(names).size).toBe(4);
    for (const name of names.slice(1)) expect(name).toMatch(/^swebatch-service-\d(?:-[a-z0-9]+)*$/);
  });
});

describe('what one pod cannot give', () => {
  const pair = (one: string, other = '') =>
    `services: { a: { image: x, ${one} }, b: { image: x, ${other} } }\n`;

  test('is nothing in a task that is made for it', () => {
    expect(refusalsOf(SHOP)).toEqual([]);
    expect(refusalsOf(SHOP, { network: 'public', user: 'root' })).toEqual([]);
    expect(refusalsOf(pair('ports: ["53:53/udp"]', 'expose: [53]'))).toEqual([]);
  });

  test.each([
    [
      pair('ports: ["8000-8010:9000-9010"]', 'expose: ["9005"]'),
      'a and b both listen on port 9005/tcp, and containers of one pod share their address',
    ],
    [
      'services: { main: { expose: [80] }, web: { image: x, ports: [{ target: 80, published: 8080 }] } }\n',
      'main and web both listen on port 80/tcp',
    ],
    [
      'services: { main: { networks: [front] }, db: { image: x, networks: [back] } }\nnetworks: { front: , back: }\n',
      'main and db share no network, and containers of one pod reach each other',
    ],
    ['services: { db: { image: x, network_mode: none } }\n', 'main and db share no network'],
    [
      pair('restart: always'),
      'a is restarted (restart: always), and a pod starts none of its containers again',
    ],
    [pair('hostname: other'), 'a has the hostname other, and a pod has one for all of its containers'],
    [pair('user: postgres'), 'a is the user postgres: Kubernetes takes a number'],
    [pair('pids_limit: 10'), 'a has a limit of processes, which the kubelet alone sets'],
    [pair('ulimits: { nofile: 10 }'), 'a has ulimits (nofile), which a pod has none of'],
    [pair('healthcheck: { interval: 1s }'), 'a has the healthcheck of its image, which a pod cannot ask for'],
    [
      pair('working_dir: /', 'depends_on: { a: { condition: service_healthy } }'),
      'a has the healthcheck of its image, which a pod cannot ask for',
    ],
    [pair('entrypoint: []'), 'a empties the entrypoint of its image, whose command a pod cannot ask for'],
    [pair('tmpfs: "/x:uid=5"'), 'a has memory at /x with the options uid=5'],
    [
      'services: { my_db: { image: x } }\n',
      'my_db is called my_db, and names of hosts in pods have letters, digits, - and . alone',
    ],
  ])('%s', (file, reason) => {
    expect(refusalsOf(file).join('; ')).toContain(reason);
  });

  test('depends on the task around them too', () => {
    const inner =
      'services: { main: { networks: [n] }, db: { image: x, networks: [n] } }\nnetworks: { n: { internal: true } }\n';
    expect(refusalsOf(inner)).toEqual([]);
    expect(refusalsOf(inner, { network: 'public' })).toEqual([
      'db is on internal networks alone, and containers of one pod reach the same',
    ]);
    const file = pair('working_dir: /');
    expect(refusalsOf(file, { user: '1000' })).toEqual([
      'its agent is the user 1000, and its verifier would be too',
    ]);
    expect(refusalsOf(file, { user: 'root', worker: '1000' })).toEqual(refusalsOf(file, { user: '1000' }));
    const entry = (...command: string[]) => refusalsOf(file, { entryAlone: true, entryArguments: command });
    for (const waits of [
      ['sh', '-c', 'exec  sleep infinity'],
      ['sleep', '3600'],
      ['tail', '-f', '/dev/null'],
    ])
      expect(entry(...waits)).toEqual([]);
    for (const works of [['nginx'], ['bash', '-c', 'service db start; sleep infinity']])
      expect(entry(...works)).toEqual(['main has a command of its own, which pods do not run']);
  });

  test('is told as one clause, of which only the first are shown', async () => {
    const services = servicesIn(
      `services: { ${Array.from({ length: 9 }, (_, i) => `s${i}: { image: x, restart: always }`).join(', ')} }\n`,
    );
    const said = await kubernetes.taskRefusal!({ services }, { network: 'none' });
    expect(said).toMatch(/^its services are no containers of one pod: s0 is restarted .*; and 5 more$/);
    expect(await kubernetes.taskRefusal!({}, {})).toBeUndefined();
    // Who works there is who its pod runs as.
    expect(await kubernetes.taskRefusal!({ user: 'db', worker: '1000' }, {})).toBeUndefined();
    expect(await kubernetes.taskRefusal!({ worker: 'candidate' }, {})).toBe(
      'its agent cannot be whom it names: the user is "candidate", and Kubernetes takes a number, or two as in 1000:1000',
    );
  });
});

describe('a hostile file', () => {
  const read = (service: string) =>
    readCompose(`services: { bad: { image: x, ${service} } }\n`, {
      files: new Set(['a']),
      taskHas: () => true,
      image: 'task:1',
      env: {},
    });

  test.each([
    'volumes: ["/etc:/host:ro"]',
    'volumes: ["/var/run/docker.sock:/s"]',
    'volumes: ["../..:/up:ro"]',
    'volumes: [{ type: bind, source: /, target: /host }]',
    'privileged: true',
    'network_mode: host',
    'network_mode: "service:main"',
    'pid: host',
    'ipc: host',
    'cap_add: [SYS_ADMIN]',
    'devices: ["/dev/kvm"]',
    'security_opt: ["seccomp:unconfined"]',
    'secrets: [token]',
  ])('is refused before there is a pod: %s', (line) => {
    expect(read(line)).toMatchObject({ ok: false, reasons: [expect.stringContaining('service bad: ')] });
  });

  test('leaves no volume but empty ones, and no container with more than main, whatever it mounts where', () => {
    const { spec } = podOf(`services:
  bad:
    image: x
    command: ["$$(KUBERNETES_SERVICE_HOST)"]
    environment: { X: "$$(TOKEN)" }
    volumes: ["v:/var/run/secrets/kubernetes.io/serviceaccount", "v:/proc/x", "/anonymous", "v:/opt/swebatch-relay"]
    tmpfs: ["/sys/x"]
    cap_add: [NET_RAW, SETUID]
volumes: { v: }
`);
    for (const { emptyDir, name, ...rest } of spec.volumes!) {
      expect(name).toMatch(/^swebatch-/);
      expect(emptyDir).toBeDefined();
      expect(rest).toEqual({});
    }
    expect(spec).toMatchObject({ automountServiceAccountToken: false, hostNetwork: false, hostPID: false });
    for (const { securityContext, volumeDevices, lifecycle, envFrom } of [
      ...spec.containers,
      ...spec.initContainers!,
    ]) {
      expect(securityContext).toMatchObject({ privileged: false, allowPrivilegeEscalation: false });
      expect([volumeDevices, lifecycle, envFrom]).toEqual([undefined, undefined, undefined]);
    }
    const bad = spec.containers.at(-1)!;
    // The kubelet fills in nothing.
    expect([bad.args, bad.env]).toEqual([
      ['$$(KUBERNETES_SERVICE_HOST)'],
      [{ name: 'X', value: '$$(TOKEN)' }],
    ]);
  });
});

describe('the state of a service', () => {
  const pod = (state: object, more: object = {}) => ({
    metadata: { name: 'p' },
    status: {
      conditions: [{ type: 'PodScheduled', status: 'True' }],
      containerStatuses: [
        { name: 'main', state: { running: {} } },
        { name: 's', state },
      ] as never,
      ...more,
    },
  });
  const of = (state: object) => stateOfService(pod(state), 's');

  test('is told by the kubelet, and its end is no end of the pod', () => {
    expect(of({ running: {} })).toEqual({ state: 'running' });
    expect(of({ terminated: { exitCode: 137, reason: 'OOMKilled' } })).toEqual({
      ...{ state: 'ended', exitCode: 137, outOfMemory: true, why: '' },
    });
    expect(stateOfPod(pod({ terminated: { exitCode: 1, reason: 'Error' } }), 0)).toEqual({
      state: 'running',
    });
    expect(
      of({ terminated: { exitCode: 127, reason: 'ContainerCannotRun', message: 'no such program' } }),
    ).toMatchObject({ why: 'no such program' });
  });

  test('is a wait while it has no image, and a fault where its name is wrong', () => {
    const waiting = (message: string) => of({ waiting: { reason: 'InvalidImageName', message } });
    expect(waiting(`couldn't parse image reference "${WAITS}"`)).toMatchObject({
      state: 'waiting',
      phase: 'start',
    });
    expect(waiting(`couldn't parse image reference "X"`)).toMatchObject({
      state: 'failed',
      fault: { code: 'image_missing' },
    });
  });

  test('is a fault where its volume could not be filled, by name', () => {
    const initContainerStatuses = [
      { name: 'swebatch-fill-service-0-db', state: { terminated: { exitCode: 127, reason: 'Error' } } },
    ];
    const failed = pod({}, { phase: 'Failed', initContainerStatuses, containerStatuses: [] });
    expect(stateOfPod(failed as never, 0)).toMatchObject({
      state: 'failed',
      fault: {
        code: 'start_failed',
        message: expect.stringContaining('swebatch-fill-service-0-db of pod p'),
      },
    });
  });
});
