// docker-compose.yaml of Harbor tasks: what is taken of it, and what refuses the task, with the service and the key.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Compose are written so.
import { describe, expect, test } from 'vitest';
import { recipeOfBuild, type TaskBuild } from '../../../src/suites/harbor/builds.ts';
import { type Compose, readCompose } from '../../../src/suites/harbor/compose.ts';
import { interpolate, wordsOf } from '../../../src/suites/harbor/composeText.ts';
import { readTask } from '../../../src/suites/harbor/readTask.ts';
import { tempDir } from '../../support/cli.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const FILES = ['Dockerfile', 'web/Dockerfile', 'web/nginx.conf', 'conf/a.txt', 'conf/b/c.txt'];
const given = {
  files: new Set(FILES),
  taskHas: (path: string) => FILES.some((file) => path === `environment/${file}`) || path === 'Dockerfile',
  image: undefined,
  env: {},
};

function taken(text: string, more: Partial<typeof given> = {}): Compose {
  const read = readCompose(text, { ...given, ...more });
  if (!read.ok) throw new Error(read.reasons.join('; '));
  return read.compose;
}
function refused(text: string, more: Partial<typeof given> = {}): string {
  const read = readCompose(text, { ...given, ...more });
  return read.ok ? 'taken' : read.reasons.join('; ');
}
const db = (lines: string) =>
  `services:\n  db:\n    image: postgres:17\n${lines.replaceAll(/^/gm, '    ')}\n`;

describe('what is taken', () => {
  test('services with builds, health, order, volumes, networks and variables', () => {
    const { main, services, images, notes } = taken(
      `
version: "3.8"
x-common: &common
  environment: { A: 1, B: "\${MISSING:-two}" }
services:
  main:
    build: { context: "\${CONTEXT_DIR}" }
    image: \${MAIN_IMAGE_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment:
      - TEST_DIR=\${TEST_DIR}
      - DB=db:5432
    volumes:
      - \${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}
      - state:/state:ro
    depends_on:
      db: { condition: service_healthy }
      web: { condition: service_started }
    deploy:
      resources:
        limits:
          cpus: \${CPUS}
          memory: \${MEMORY}
  web:
    <<: *common
    build: { context: ./web, args: [V=1] }
    ports: ["8080:80"]
    depends_on: [db]
    container_name: front
    networks: { default: {}, back: { aliases: [www] } }
    volumes: ["./conf:/etc/conf:ro"]
  db:
    image: postgres:17
    command: postgres -c 'shared_buffers=16 MB'
    healthcheck: { test: pg_isready, interval: 1m30s, timeout: 500ms, retries: 4 }
    volumes: [state:/var/lib/data, /scratch]
    mem_limit: 256m
    networks: [back]
networks: { back: { internal: true } }
volumes: { state: }
`.replace(', target: final', ''),
    );
    expect(main).toMatchObject({ env: { TEST_DIR: '/tests', DB: 'db:5432' }, noNetwork: false });
    expect(services!.containers.map(({ name }) => name)).toEqual(['db', 'web']);
    const [database, web] = services!.containers;
    expect(database).toMatchObject({
      command: ['postgres', '-c', 'shared_buffers=16 MB'],
      healthcheck: { test: ['CMD-SHELL', 'pg_isready'], intervalMs: 90_000, timeoutMs: 500, retries: 4 },
      volumes: [
        { name: 'state', path: '/var/lib/data', readOnly: false },
        { name: 'db-1', path: '/scratch', readOnly: false },
      ],
      networks: [{ name: 'back', aliases: ['db'] }],
      memoryBytes: 256 * 2 ** 20,
    });
    expect(web).toMatchObject({
      env: { A: '1', B: 'two' },
      after: [{ service: 'db', until: 'started' }],
      networks: [
        { name: 'default', aliases: ['web', 'front'] },
        { name: 'back', aliases: ['web', 'front', 'www'] },
      ],
    });
    expect(images.get('web')).toEqual({
      image: undefined,
      build: { context: 'environment/web', dockerfile: 'Dockerfile', target: undefined, args: { V: '1' } },
      copies: [{ from: 'conf', to: '/etc/conf' }],
    });
    expect(services!.own).toEqual({
      name: 'main',
      networks: [{ name: 'default', aliases: ['main'] }],
      volumes: [{ name: 'state', path: '/state', readOnly: true }],
    });
    expect(services!.networks).toEqual([
      { name: 'default', inner: false },
      { name: 'back', inner: true },
    ]);
    expect(notes.join()).toContain('service web: ports are reached by the other services');
  });

  test('a file of the agent’s container alone asks for no services', () => {
    const alone = taken(
      'services: { main: { environment: { A: b }, network_mode: "${NETWORK_MODE:-bridge}" } }',
    );
    expect(alone.services).toBeUndefined();
    expect(alone.main).toMatchObject({ env: { A: 'b' }, noNetwork: false });
    expect(taken('services: { main: { network_mode: none } }').main.noNetwork).toBe(true);
  });

  test('a folder of logs that a service has of Harbor is one volume with that of the agent’s container', () => {
    const { services } = taken(db('volumes: ["${HOST_AGENT_LOGS_PATH}:/out"]'));
    expect(services!.containers[0]!.volumes).toEqual([
      { name: 'harbor-logs-agent', path: '/out', readOnly: false },
    ]);
    expect(services!.own.volumes).toEqual([
      { name: 'harbor-logs-agent', path: '/logs/agent', readOnly: false },
    ]);
  });

  test('rights of the usual set may be added to what was dropped', () => {
    const { services } = taken(db('cap_drop: [ALL]\ncap_add: [CAP_SETUID, chown]\nprivileged: false'));
    expect(services!.containers[0]).toMatchObject({ capDrop: ['ALL'], capAdd: ['SETUID', 'CHOWN'] });
  });
});

test('a value that is nothing but a variable of this machine is asked of whoever runs the task', () => {
  const lines = 'environment: [A, "B=${B_KEY}", "C=$C_KEY", "D=${D_KEY:-d}", "E=$$E", "F=${F:-${G}}"]';
  const { services } = taken(db(lines.replace(', "F=${F:-${G}}"', '')));
  expect(services!.containers[0]).toMatchObject({
    env: { D: 'd', E: '$E' },
    variables: { A: 'A', B: 'B_KEY', C: 'C_KEY', D: 'D_KEY' },
  });
  expect(refused(db(lines))).toBe('service db: environment.5 wants $G of this machine');
  const { main } = taken('services: { main: { environment: { A: "${A_KEY}" } } }');
  expect([main.env, main.variables]).toEqual([{}, { A: 'A_KEY' }]);
  // No text of a file looks like it.
  const { services: plain } = taken(db('environment: { A: "\\0B_KEY" }'));
  expect(plain!.containers[0]).toMatchObject({ env: { A: 'B_KEY' } });
});

describe('what refuses the task, by name', () => {
  test.each([
    ['privileged: true', 'service db: privileged is not taken: no container gets rights of the machine'],
    ['network_mode: host', 'service db: network_mode host is not taken'],
    ['network_mode: "service:main"', 'network_mode service:main is not taken'],
    ['pid: host', 'service db: pid is not taken'],
    ['ipc: host', 'service db: ipc is not taken'],
    ['userns_mode: host', 'service db: userns_mode is not taken'],
    ['cap_add: [SYS_ADMIN]', 'service db: cap_add SYS_ADMIN is not taken'],
    ['cap_add: [ALL]', 'service db: cap_add ALL is not taken'],
    ['devices: ["/dev/kvm"]', 'service db: devices is not taken'],
    ['security_opt: [seccomp=unconfined]', 'security_opt seccomp=unconfined is not taken'],
    ['extra_hosts: ["host.docker.internal:host-gateway"]', 'service db: extra_hosts is not taken'],
    [
      'volumes: ["/var/run/docker.sock:/var/run/docker.sock"]',
      'it mounts /var/run/docker.sock of the machine',
    ],
    ['volumes: ["~/.ssh:/root/.ssh:ro"]', 'it mounts ~/.ssh of the machine'],
    ['volumes: ["../tests:/t:ro"]', 'it mounts ../tests, which is outside of environment/'],
    ['volumes: ["./conf/../../solution:/t:ro"]', 'which is outside of environment/'],
    ['volumes: ["./conf:/c"]', 'it mounts ./conf to write there'],
    ['volumes: ["./none:/c:ro"]', 'it mounts ./none, which environment/ does not have'],
    ['volumes: [{type: bind, source: /etc, target: /c, read_only: true}]', 'it mounts /etc of the machine'],
    ['volumes: ["unknown:/c"]', 'the file has no volume unknown'],
    ['volumes: ["${HOST_VERIFIER_LOGS_PATH}:/v"]', 'it mounts the folder of the verifier'],
    ['volumes: [{type: volume, source: x, target: /c, volume: {subpath: a}}]', 'volumes'],
    ['extends: { file: other.yaml, service: x }', 'service db: extends is not taken: write the service out'],
    ['env_file: .env', 'service db: env_file is not taken'],
    ['deploy: { resources: { reservations: { devices: [] } } }', 'deploy'],
    ['deploy: { replicas: 3 }', 'service db: deploy.replicas'],
    ['environment: ["TOKEN=Bearer ${TOKEN}"]', 'service db: environment.0 wants $TOKEN of this machine'],
    ['environment: { TOKEN: "${TOKEN:?}" }', 'service db: environment.TOKEN wants $TOKEN of this machine'],
    ['command: ["x", "${TOKEN}"]', 'service db: command.1 wants $TOKEN of this machine'],
    ['build: { context: ., args: [TOKEN] }', 'service db: build args wants $TOKEN of this machine'],
    ['depends_on: [nobody]', 'service db: depends_on names nobody, which is not there'],
    ['depends_on: { main: { condition: service_healthy } }', 'only its start can be waited for'],
    ['depends_on: [db]', 'service db: depends_on leads in a circle'],
    ['networks: [other]', 'service db: the file has no network other'],
    ['networks: { default: { ipv4_address: 10.0.0.2 } }', 'service db: networks'],
    ['healthcheck: { test: pg_isready, interval: soon }', 'healthcheck.interval must be a duration'],
    ['sysctls: { net.core.somaxconn: 1 }', 'service db: sysctls is not taken'],
    ['nonsense: 1', 'service db: nonsense is not taken'],
    ['build: ../..', 'it is built from ../.., which is outside of the task'],
    [
      'build: { context: "${CONTEXT_DIR}/../.." }',
      'it is built from environment/../.., which is outside of the task',
    ],
    [
      'build: { context: "..", dockerfile: web/Dockerfile }',
      'it is built by web/Dockerfile, which the task does not have',
    ],
    [
      'build: { context: web, dockerfile: ../Dockerfile }',
      'it is built by environment/Dockerfile, which is outside of environment/web',
    ],
    ['build: { context: ., network: host }', 'service db: build'],
  ])('%s', (line, reason) => {
    expect(refused(db(line))).toContain(reason);
  });

  test.each([
    ['include: [other.yaml]', 'include is not taken: write the services into one file'],
    ['secrets: { a: { file: /etc/shadow } }', 'secrets is not taken'],
    ['networks: { a: { external: true } }', 'network a: external is not taken: each attempt has'],
    ['networks: { a: { ipam: { config: [{ subnet: 10.0.0.0/8 }] } } }', 'network a: ipam is not taken'],
    ['networks: { a: { driver: host } }', 'network a: driver'],
    [
      'volumes: { a: { driver_opts: { type: none, o: bind, device: / } } }',
      'volume a: driver_opts is not taken',
    ],
    ['volumes: { a: { external: true } }', 'volume a: external is not taken'],
  ])('%s', (line, reason) => {
    expect(refused(`${line}\nservices: { db: { image: x } }`)).toContain(reason);
  });

  test.each([
    ['volumes: [v:/tests]', 'where the verifier’s files are'],
    ['volumes: [v:/logs]', 'where the verifier’s files are'],
    ['tmpfs: /run', 'service main: tmpfs is not taken'],
    ['privileged: true', 'service main: privileged is not taken'],
    ['cap_drop: [ALL]', 'service main: cap_drop is not taken'],
  ])('of the agent’s container: %s', (line, reason) => {
    expect(refused(`services: { main: { ${line} } }\nvolumes: { v: }`)).toContain(reason);
  });

  test('every reason at once, for a person who mends the file', () => {
    const said = refused(db('privileged: true\npid: host\nvolumes: ["/:/host"]'));
    expect(said).toMatch(/privileged.*pid/);
  });
});

describe('texts of strangers', () => {
  test.each([
    ['a$$b', 'a$b'],
    ['$A-${A}', 'x-x'],
    ['${N:-d}${E:-d}${E-d}', 'dd'],
    ['${N:-${A}}', 'x'],
    ['${A:+y}${N:+y}${N-}', 'y'],
    ['${A:?never}', 'x'],
  ])('%s is %s', (text, value) => {
    expect(interpolate(text, { A: 'x', E: '' })).toBe(value);
  });

  test.each([
    ['${A'],
    ['${A:5}'],
    ['$(id)'],
    ['$[x]'],
    ['${}'],
    ['${N}'],
    ['${N:?gone}'],
    [`${'${N:-'.repeat(50)}${'}'.repeat(50)}`],
  ])('%s is refused', (text) => {
    expect(() => interpolate(text, { A: 'x' })).toThrow();
  });

  test('no variable of this program reaches a task, and none of every object', () => {
    expect(() => interpolate('${PATH}', {})).toThrow('wants $PATH of this machine');
    expect(() => interpolate('${constructor}${__proto__}', {})).toThrow('wants $constructor');
  });

  test('lines become words as a shell takes them apart', () => {
    expect(wordsOf(`a 'b c' "d \\" e" f\\ g ''`)).toEqual(['a', 'b c', 'd " e', 'f g', '']);
    expect(() => wordsOf(`'open`)).toThrow('not closed');
  });

  test.each([
    [
      'aliases that multiply',
      `a: &a [x]\n${[...'bcdefghijk'].map((k, i) => `${k}: &${k} [${`*${'abcdefghij'[i]},`.repeat(9)}]`).join('\n')}\nservices: { db: { image: *k } }`,
    ],
    ['an alias in itself', 'services: &s { db: *s }'],
    ['a key twice', 'services: { db: { image: x, image: y } }'],
    ['a tag of Compose', 'services: { db: !reset null }'],
    ['a list', '- a'],
    ['nothing', ''],
    ['a text', 'services: hello'],
    ['services that are numbers', 'services: { db: 7 }'],
    ['names that lead elsewhere', 'services: { "../x": { image: x } }'],
    [
      'types that are odd',
      'services: { db: { image: [x], command: 5, volumes: yes, environment: 3, depends_on: 1 } }',
    ],
    [
      'a prototype',
      'services: { __proto__: { privileged: true }, db: { __proto__: { privileged: true }, image: x, command: 3 } }',
    ],
    ['brackets without end', `services: ${'['.repeat(2000)}`],
    ['a megabyte', `services: { db: { image: ${'x'.repeat(1_100_000)} } }`],
  ])('%s', (_, text) => {
    expect(readCompose(text, given).ok).toBe(false);
  });
});

describe('a task with such a file', () => {
  test('is refused with the file, the service and the key', () => {
    const folder = harborTask(tempDir('compose-'), 'evil', {
      'environment/docker-compose.yaml': db('privileged: true'),
    });
    expect(readTask(folder).refused).toContain(
      'environment/docker-compose.yaml: service db: privileged is not taken',
    );
  });

  test('names its images, and what is built of them, by what decides the build', () => {
    const files = {
      'task.toml': 'schema_version = "1.3"\n',
      'environment/Dockerfile': 'FROM debian:12\n',
      'environment/web/Dockerfile': 'FROM debian:12\n',
      'environment/web/page': 'hello',
      'environment/conf/a': '1',
      'environment/docker-compose.yaml': `services:
  main: { depends_on: [web], image: "\${COMPOSE_PROJECT_NAME}-img" }
  web: { build: { context: web, args: { A: "1" } }, volumes: ["./conf:/etc/conf:ro"] }
  same: { image: "\${MAIN_IMAGE_NAME}", command: serve }
  tagged: { image: "\${COMPOSE_PROJECT_NAME}-img" }
`,
    };
    const dir = tempDir('compose-');
    const read = readTask(harborTask(dir, 'a', files));
    expect(read.refused).toBeUndefined();
    const { services, builds } = read.instance.extra.harbor as {
      services: { containers: { name: string; image: string }[] };
      builds: { image: string; folder: string }[];
    };
    const [web, same, tagged] = services.containers;
    expect([same!.image, tagged!.image]).toEqual([read.instance.image, read.instance.image]);
    expect(builds.map(({ image, folder }) => [image, folder])).toEqual([
      [read.instance.image, 'environment'],
      [web!.image, 'environment/web'],
    ]);
    const other = readTask(harborTask(dir, 'b', { ...files, 'environment/conf/a': '2' }));
    expect(JSON.stringify(other.instance.extra)).not.toContain(web!.image);
  });

  test('is built from its whole folder where the file says so, by the Dockerfile of environment/', () => {
    const files = {
      'task.toml': 'schema_version = "1.3"\n',
      'app/page': 'hello',
      'environment/Dockerfile': 'FROM debian:12\nCOPY app/ /app/\n',
      'environment/docker-compose.yaml':
        'services: { main: { build: { context: "${CONTEXT_DIR}/..", dockerfile: "${CONTEXT_DIR}/Dockerfile" } } }\n',
    };
    const dir = tempDir('compose-');
    const folder = harborTask(dir, 'a', files);
    const read = readTask(folder);
    expect(read.refused).toBeUndefined();
    const { builds } = read.instance.extra.harbor as { builds: TaskBuild[] };
    expect(builds).toMatchObject([
      { image: read.instance.image, folder: '', dockerfile: 'environment/Dockerfile' },
    ]);
    const sent = recipeOfBuild(folder, 'a', builds[0]!).files();
    expect(sent.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['app/page', 'environment/Dockerfile']),
    );
    const other = readTask(harborTask(dir, 'b', { ...files, 'app/page': 'another' }));
    expect(other.instance.image).not.toBe(read.instance.image);
  });
});
