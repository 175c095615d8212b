// Tasks with several containers, on a real engine: the agent and the tests reach the services by their names, and all is gone afterwards.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type CliResult, cli, startCli, tempDir } from '../../support/cli.ts';
import { docker, dockerAvailable, watchDocker } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const available = await dockerAvailable();

const TOML = `schema_version = "1.3"
[environment]
network_mode = "no-network"
[agent]
timeout_sec = 120
[verifier]
timeout_sec = 60
`;
const FILE = `services:
  main:
    depends_on:
      web: { condition: service_healthy }
    environment: { WEB: "http://www:8000" }
    volumes: [shared:/shared:ro]
  web:
    build: { context: web, args: { GREETING: hello } }
    command: python3 /serve.py
    depends_on:
      db: { condition: service_healthy }
      seed: { condition: service_completed_successfully }
    environment: { DB: "db:5432", TOKEN: "\${TOKEN:-none}" }
    networks: { default: { aliases: [www] }, back: }
    healthcheck: { test: ["CMD", "python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready')"], interval: 1s, retries: 50 }
    ports: ["8000:8000"]
    mem_limit: 128m
  db:
    image: \${MAIN_IMAGE_NAME}
    command: ["python3", "/conf/db.py"]
    networks: [back]
    volumes: ["./conf:/conf:ro", "data:/data"]
    healthcheck: { test: "test -e /data/ready", interval: 1s, retries: 50 }
  seed:
    image: \${MAIN_IMAGE_NAME}
    command: sh -c 'echo seeded > /shared/seed'
    volumes: [shared:/shared]
networks: { back: { internal: true } }
volumes: { shared: , data: }
`;
/** A store that keeps what it is told in memory alone. */
const DB = `import os, socketserver, pathlib
kept = []
class H(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode().strip()
        if line.startswith('put '): kept.append(line[4:])
        self.wfile.write(','.join(kept).encode())
s = socketserver.ThreadingTCPServer(('', 5432), H)
pathlib.Path('/data/ready').touch()
print('db is ready', *filter(None, [os.environ.get('SECRET')]), *sorted(os.listdir('/sys/class/net')), flush=True)
s.serve_forever()
`;
const SERVE = `import http.server, os, socket
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        host, port = os.environ['DB'].split(':')
        said = os.environ['GREETING']
        if self.path != '/ready':
            c = socket.create_connection((host, int(port)), 5)
            c.sendall((self.path[1:].replace('-', ' ') + '\\n').encode())
            said = c.makefile().read()
        self.send_response(200); self.end_headers(); self.wfile.write(said.encode())
http.server.ThreadingHTTPServer(('', 8000), H).serve_forever()
`;
const ASK = `ask() { python3 -c 'import os, sys; from urllib.request import urlopen as u; print(u(os.environ["WEB"] + "/" + sys.argv[1], timeout=5).read().decode().strip())' "$1"; }`;
/** Of the container of the work: no name of the outside, no way out, no service of another network, and nothing of this machine. */
const CLOSED = `closed() { python3 - <<'PY'
import socket
for host, port in (('1.1.1.1', 53), ('db', 5432), ('deb.debian.org', 80)):
    try:
        socket.create_connection((host, port), 2)
        raise SystemExit('reached ' + host)
    except OSError: pass
gateway = [line.split() for line in open('/proc/net/route')][1:]
for row in gateway:
    if row[1] != '00000000': continue
    at = '.'.join(str(int(row[2][i:i + 2], 16)) for i in (6, 4, 2, 0))
    try: socket.create_connection((at, 22), 2); raise SystemExit('the machine answers')
    except ConnectionRefusedError: raise SystemExit('the machine answers')
    except OSError: pass
PY
}`;
const FILES = {
  'task.toml': TOML,
  'environment/Dockerfile': `FROM ${BASE_IMAGE}\nWORKDIR /work\n`,
  'environment/docker-compose.yaml': FILE,
  'environment/web/Dockerfile': `FROM ${BASE_IMAGE}\nARG GREETING\nENV GREETING=$GREETING\nCOPY serve.py /serve.py\n`,
  'environment/web/serve.py': SERVE,
  'environment/conf/db.py': DB,
  'solution/solve.sh': `#!/bin/bash\nset -ex\n${ASK}\n${CLOSED}\n[ "$(ask ready)" = hello ]\n[ "$(cat /shared/seed)" = seeded ]\n! touch /shared/x\nclosed\nask put-answer\n`,
  'tests/test.sh': `#!/bin/bash\n${ASK}\nr=0\n[ "$(ask get)" = answer ] && [ "$(cat /shared/seed)" = seeded ] && r=1\necho $r > /logs/verifier/reward.txt\n`,
};

/** What the engine has of services of a task, by label. */
async function leftOf(instance: string): Promise<string[]> {
  const filters = { label: [`swebatch.instance=${instance}`] };
  const [containers, networks, volumes] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters: JSON.stringify(filters) }),
  ]);
  return [
    ...containers.flatMap(({ Names }) => Names),
    ...networks.map(({ Name }) => Name),
    ...volumes.Volumes.map(({ Name }) => Name),
  ];
}

/** Every container of a task: limits, and nothing of the machine. */
async function expectHarmless(instance: string): Promise<void> {
  const filters = { label: [`swebatch.instance=${instance}`] };
  const found = await docker.listContainers({ all: true, filters });
  for (const { Id, Labels } of found) {
    const { HostConfig: host, Mounts: mounts } = await docker.getContainer(Id).inspect();
    const { Privileged, Binds, PidMode, CapAdd, Devices, SecurityOpt, PidsLimit, NanoCpus, Memory } = host;
    expect({ Privileged, Binds, PidMode, CapAdd: CapAdd ?? [], Devices: Devices ?? [] }).toEqual({
      ...{ Privileged: false, Binds: null, PidMode: '', CapAdd: [], Devices: [] },
    });
    expect(Object.keys((host.PortBindings as object | null) ?? {})).toEqual([]);
    expect(mounts.map(({ Type }) => Type).filter((type) => type !== 'volume')).toEqual([]);
    expect(SecurityOpt).toEqual(['no-new-privileges']);
    expect(PidsLimit).toBeGreaterThan(0);
    expect(NanoCpus).toBeGreaterThan(0);
    expect(Memory).toBe(Labels['swebatch.service'] === 'web' ? 128 * 2 ** 20 : 4 * 2 ** 30);
  }
}

const oracle = (tasks: string, out: string, id: string) => [
  ...['run', '--subset', tasks, '-o', out, '-w', '2', '--evaluate', '--run-id', id],
  ...['-c', 'agent.agent_class=oracle', '-c', 'run.retry.attempts=1'],
];
const told = ({ stdout, stderr }: CliResult) => stdout + stderr;

describe.skipIf(!available)('a task of several containers', () => {
  const ids: string[] = [];
  const named = (name: string) => {
    const id = `${name}-${process.pid}`;
    ids.push(id);
    return id;
  };
  afterEach(async () => {
    for (const id of ids.splice(0)) {
      const filters = { label: [`swebatch.instance=${id}`] };
      for (const { Id } of await docker.listContainers({ all: true, filters }))
        await docker.getContainer(Id).remove({ force: true, v: true });
      for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove();
      for (const { Name } of (await docker.listVolumes({ filters: JSON.stringify(filters) })).Volumes)
        await docker.getVolume(Name).remove();
    }
  });

  test('has a server and a store that the agent asks by name; the tests find them as the agent left them, and nothing stays', async () => {
    const dir = tempDir('services-');
    const id = named('shop');
    // It has a variable of this machine, whose value is written nowhere.
    const secret = 'shop-91c4f0aa37';
    harborTask(join(dir, 'tasks'), id, {
      ...FILES,
      'environment/docker-compose.yaml': FILE.replace(
        'networks: [back]',
        `environment: ["SECRET=\${SHOP_SECRET}"]\n    networks: [back]`,
      ),
    });
    const args = oracle(join(dir, 'tasks'), join(dir, 'out'), 'o');
    const refused = await cli(args);
    expect(told(refused)).toContain(
      'service db: environment.SECRET wants $SHOP_SECRET of this machine: allow it with suite.env=SHOP_SECRET',
    );
    const done = await cli([...args, '-c', 'suite.env=SHOP_SECRET'], { env: { SHOP_SECRET: secret } });
    expect(told(done)).toMatch(new RegExp(`${id} graded resolved`));
    expect(await leftOf(id)).toEqual([]);
    const files = readdirSync(join(dir, 'out'), { recursive: true, withFileTypes: true });
    const written = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
    expect(written.filter((path) => readFileSync(path).includes(secret))).toEqual([]);
    const kept = join(dir, 'out', 'o', 'services');
    const [attempt] = readdirSync(kept);
    expect(readdirSync(join(kept, attempt!)).sort()).toEqual(['db.log', 'seed.log', 'web.log']);
    expect(readFileSync(join(kept, attempt!, 'db.log'), 'utf8')).toMatch(
      /db is ready ‹redacted:SHOP_SECRET›/,
    );
  });

  test('says which service did not start, and what it printed last', async () => {
    const dir = tempDir('services-');
    const tasks = join(dir, 'tasks');
    const service = (lines: string) =>
      `services:\n  db:\n    image: \${MAIN_IMAGE_NAME}\n    ${lines.replaceAll('\n', '\n    ')}\n`;
    harborTask(tasks, named('dies'), {
      ...FILES,
      'environment/docker-compose.yaml': service(`command: sh -c 'echo no disk for me; exit 3'`),
    });
    harborTask(tasks, named('sick'), {
      ...FILES,
      'environment/docker-compose.yaml': service(
        `command: sh -c 'echo I try; sleep 100'\nhealthcheck: { test: "echo still asleep; exit 1", interval: 100ms, retries: 2 }`,
      ),
    });
    const done = await cli(oracle(tasks, join(dir, 'out'), 'o'));
    expect(told(done)).toMatch(
      /the service db of dies-\d+ is not running: it ended with exit code 3\. Its last output: no disk for me/,
    );
    expect(told(done)).toMatch(
      /the service db of sick-\d+ is unhealthy: .*said: still asleep\. Its last output: I try/,
    );
    for (const id of ids) expect(await leftOf(id)).toEqual([]);
  });

  test('leaves nothing when the program is killed: the next start sweeps services, networks and volumes', async () => {
    const dir = tempDir('services-');
    const id = named('killed');
    const tasks = join(dir, 'tasks');
    const out = join(dir, 'out');
    harborTask(tasks, id, {
      ...FILES,
      'solution/solve.sh': '#!/bin/bash\n[ -e /shared/never ] || sleep 300\n',
    });
    const running = startCli(oracle(tasks, out, 'k'));
    await expect.poll(() => leftOf(id), { timeout: 120_000, interval: 200 }).toHaveLength(8);
    const harmless = await expectHarmless(id).catch((error: unknown) => error);
    running.process.kill('SIGKILL');
    expect(harmless, told(await running.done)).toBe(undefined);
    const shown = await cli(['clean', '--dry-run', '-o', out]);
    // Each run that starts on this engine sweeps: one of another test may have been faster.
    if ((await leftOf(id)).length === 8) expect(told(shown)).toContain('swebatch-services-');
    const cleaned = await cli(['clean', '-o', out]);
    expect(told(cleaned)).not.toContain('could not');
    expect(await leftOf(id)).toEqual([]);
  });

  test('goes on after a kill: "resume" sweeps what is left and works with services of its own', async () => {
    const dir = tempDir('services-');
    const id = named('resumed');
    const tasks = join(dir, 'tasks');
    const out = join(dir, 'out');
    harborTask(tasks, id, FILES);
    const label = [`swebatch.instance=${id}`, 'swebatch.services'];
    const watch = await watchDocker({ label, event: ['create', 'destroy'] });
    const running = startCli(oracle(tasks, out, 'r'), { env: { SWEBATCH_CRASH_AT: 'before_capture:1' } });
    expect((await running.done).signal).toBe('SIGKILL');
    // Those of the killed one: it has removed none.
    await watch.until((seen) => seen.length >= 4);
    expect(watch.seen.slice(0, 4).map(({ Action }) => Action)).toEqual(Array(4).fill('create'));
    watch.close();
    const resumed = await cli(['resume', 'r', '-o', out]);
    expect(told(resumed)).toMatch(new RegExp(`${id} graded resolved`));
    expect(await leftOf(id)).toEqual([]);
  });

  test('reaches the outside where task.toml opens the network, and its inner networks do not', async () => {
    const dir = tempDir('services-');
    const id = named('open');
    const routes = `python3 -c "print(sum(r.split()[1] == '00000000' for r in open('/proc/net/route')))"`;
    const links = 'ls /sys/class/net | grep -c eth';
    harborTask(join(dir, 'tasks'), id, {
      ...FILES,
      'task.toml': TOML.replace('no-network', 'public'),
      'environment/docker-compose.yaml': FILE.replace(
        "sh -c 'echo seeded > /shared/seed'",
        `sh -c '${links} > /shared/seed-links; echo seeded > /shared/seed'`,
      ),
      'solution/solve.sh': `#!/bin/bash\nset -ex\n${ASK}\n[ "$(${links})" = 2 ]\n[ "$(${routes})" = 1 ]\n[ "$(cat /shared/seed-links)" = 2 ]\nask put-answer\n`,
    });
    const done = await cli(oracle(join(dir, 'tasks'), join(dir, 'out'), 'o'));
    expect(told(done)).toMatch(new RegExp(`${id} graded resolved`));
    const kept = join(dir, 'out', 'o', 'services');
    const log = join(kept, readdirSync(kept)[0]!, 'db.log');
    expect(readFileSync(log, 'utf8')).toBe('db is ready eth0 lo\n');
    expect(await leftOf(id)).toEqual([]);
  });

  test('that asks for the machine is refused before anything starts, with the service and the key', async () => {
    const dir = tempDir('services-');
    const tasks = join(dir, 'tasks');
    const lines = {
      socket: 'volumes: ["/var/run/docker.sock:/var/run/docker.sock"]',
      path: 'volumes: ["/etc:/host:ro"]',
      privileged: 'privileged: true',
      network: 'network_mode: host',
      processes: 'pid: host',
      rights: 'cap_add: [SYS_ADMIN]',
      devices: 'devices: ["/dev/kvm"]',
    };
    for (const [id, line] of Object.entries(lines))
      harborTask(tasks, id, {
        'environment/docker-compose.yaml': `services: { bad: { image: debian:12, ${line} } }\n`,
      });
    for (const args of [
      ['run', '--dry-run', '--subset', tasks, '-o', join(dir, 'out'), '-c', 'agent.agent_class=oracle'],
      ['datasets', 'check', tasks],
    ]) {
      const said = told(await cli(args));
      for (const [id, line] of Object.entries(lines)) {
        const named = said
          .split('\n')
          .find((one) => new RegExp(`\\b${id}\\b`).test(one) && one.includes('service bad: '));
        expect(named, `${id} ${line}`).toBeDefined();
      }
    }
    expect(existsSync(join(dir, 'out', 'swebatch.db'))).toBe(false);
  });
});
