// Tasks of several containers in a real cluster: one pod, whose services are reached by their names, and nothing of it stays.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../scripts/buildPrograms.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { type CliResult, cli, startCli, tempDir } from '../support/cli.ts';
import { BASE_IMAGE } from '../support/dockerEnvironment.ts';
import { harborTask } from '../support/kinds/harborTask.ts';
import { kubectl, podNames } from './clusterTools.ts';

beforeAll(() => void buildPrograms());

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
    volumes: [shared:/shared:ro, filled:/usr/share/common-licenses:ro]
  web:
    build: { context: web, args: { GREETING: hello } }
    command: python3 /serve.py
    depends_on:
      db: { condition: service_healthy }
      seed: { condition: service_completed_successfully }
    environment: { DB: "db:5432", PRICE: "$$(HOME) $$5" }
    networks: { default: { aliases: [www] } }
    healthcheck: { test: ["CMD", "python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready')"], interval: 200ms, retries: 50 }
    ports: ["8000:8000"]
    mem_limit: 128m
    read_only: true
    tmpfs: ["/run/web:size=1m"]
    cap_drop: [ALL]
  db:
    image: \${MAIN_IMAGE_NAME}
    command: ["python3", "/conf/db.py"]
    expose: [5432]
    volumes: ["./conf:/conf:ro", "data:/data"]
    healthcheck: { test: "test -e /data/ready", interval: 200ms, retries: 50 }
  seed:
    image: \${MAIN_IMAGE_NAME}
    command: sh -c 'sleep 2; echo seeded > /shared/seed'
    volumes: [shared:/shared]
volumes: { shared: , data: , filled: }
`;
/** A store that keeps what it is told in memory alone. */
const DB = `import socketserver, pathlib, time
kept = []
class H(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode().strip()
        if line.startswith('put '): kept.append(line[4:])
        self.wfile.write(','.join(kept).encode())
s = socketserver.ThreadingTCPServer(('', 5432), H)
time.sleep(2)
pathlib.Path('/data/ready').touch()
print('db is ready', flush=True)
s.serve_forever()
`;
/** It does not start where the store is not there yet. */
const SERVE = `import http.server, os, socket
host, port = os.environ['DB'].split(':')
assert os.environ['PRICE'] == '$(HOME) $5', os.environ['PRICE']
socket.create_connection((host, int(port)), 5).close()
open('/run/web/x', 'w').close()
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        said = os.environ['GREETING']
        if self.path != '/ready':
            c = socket.create_connection((host, int(port)), 5)
            c.sendall((self.path[1:].replace('-', ' ') + '\\n').encode())
            said = c.makefile().read()
        self.send_response(200); self.end_headers(); self.wfile.write(said.encode())
http.server.ThreadingHTTPServer(('', 8000), H).serve_forever()
`;
const ASK = `ask() { python3 -c 'import os, sys; from urllib.request import urlopen as u; print(u(os.environ["WEB"] + "/" + sys.argv[1], timeout=5).read().decode().strip())' "$1"; }`;
const FILES = {
  'task.toml': TOML,
  'environment/Dockerfile': `FROM ${BASE_IMAGE}\nWORKDIR /work\n`,
  'environment/docker-compose.yaml': FILE,
  'environment/web/Dockerfile': `FROM ${BASE_IMAGE}\nARG GREETING\nENV GREETING=$GREETING\nCOPY serve.py /serve.py\n`,
  'environment/web/serve.py': SERVE,
  'environment/conf/db.py': DB,
  'solution/solve.sh': `#!/bin/bash
set -ex
${ASK}
[ "$(ask ready)" = hello ]
[ "$(cat /shared/seed)" = seeded ]
! touch /shared/x
# What the image has where a volume is.
[ -s /usr/share/common-licenses/GPL-3 ]
! timeout 3 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53'
[ ! -e /var/run/secrets/kubernetes.io ]
ask put-answer
`,
  'tests/test.sh': `#!/bin/bash\n${ASK}\nr=0\n[ "$(ask get)" = answer ] && [ "$(cat /shared/seed)" = seeded ] && r=1\necho $r > /logs/verifier/reward.txt\n`,
};

const CONFIG = {
  environment: {
    ...{ environment_class: 'kubernetes', memory: '512m', pull: 'never' },
    kubernetes: { cpu_request: '10m', memory_request: '16Mi' },
  },
};
const env = { KUBECONFIG: process.env.KUBECONFIG ?? '' };
const told = ({ stdout, stderr }: CliResult) => stdout + stderr;

/** The oracle in pods; `config` goes over what all have. */
function oracle(dir: string, id: string, ...more: string[]): string[] {
  const file = join(dir, 'pods.yaml');
  writeFileSync(file, JSON.stringify(CONFIG));
  return [
    ...[
      'run',
      '--subset',
      join(dir, 'tasks'),
      '-o',
      join(dir, 'out'),
      '-w',
      '2',
      '--evaluate',
      '--run-id',
      id,
    ],
    ...['-c', file, '-c', 'agent.agent_class=oracle', '-c', 'run.retry.attempts=1', ...more],
  ];
}

/** Nodes of the test cluster have what its engine has. */
const built = async (dir: string) => {
  const done = await cli(['images', 'pull', join(dir, 'tasks')]);
  expect(done.code, told(done)).toBe(0);
};

describe('a task of several containers in pods', () => {
  test('has its services beside the agent, in their order; the tests find them as the agent left them, and nothing stays', async () => {
    const dir = tempDir('pods-');
    harborTask(join(dir, 'tasks'), 'shop', FILES);
    await built(dir);
    const done = await cli(oracle(dir, 'o'), { env });
    expect(told(done)).toMatch(/shop graded resolved/);
    const kept = join(dir, 'out', 'o', 'services');
    const [attempt] = readdirSync(kept);
    expect(readdirSync(join(kept, attempt!)).sort()).toEqual(['db.log', 'seed.log', 'web.log']);
    expect(readFileSync(join(kept, attempt!, 'db.log'), 'utf8')).toMatch(/db is ready/);
    await expect.poll(podNames).toEqual([]);
  });

  test('says which service did not start or get healthy, and what it printed last; one that waits for it is never begun', async () => {
    const dir = tempDir('pods-');
    const services = (file: string) => ({
      'task.toml': TOML.replace('[environment]', `[environment]\ndocker_image = "${BASE_IMAGE}"`),
      'environment/docker-compose.yaml': `services:\n${file}`,
    });
    const image = `image: ${BASE_IMAGE}`;
    harborTask(
      join(dir, 'tasks'),
      'dies',
      services(`  db: { ${image}, command: "sh -c 'echo no disk for me; exit 3'" }\n`),
    );
    harborTask(
      join(dir, 'tasks'),
      'sick',
      services(`  db:
    ${image}
    command: sh -c 'echo I try; sleep 100'
    healthcheck: { test: "echo still asleep; exit 1", interval: 100ms, retries: 2 }
  after: { ${image}, command: sleep 100, depends_on: { db: { condition: service_healthy } } }
`),
    );
    harborTask(join(dir, 'tasks'), 'lost', services('  db: { image: "swebatch-test/none:1" }\n'));
    harborTask(
      join(dir, 'tasks'),
      'full',
      services(
        `  db: { ${image}, mem_limit: 32m, command: "python3 -c 'x = bytearray(1 << 28); print(len(x))'" }\n`,
      ),
    );
    const done = await cli(oracle(dir, 'o'), { env });
    expect(told(done)).toMatch(
      /dies env_start_failed.*the service db of dies is not running: it ended with exit code 3\. Its last output: no disk for me/,
    );
    expect(told(done)).toMatch(
      /sick env_start_failed.*the service db of sick is unhealthy: its check ended with exit code 1, and said: still asleep\. Its last output: I try/,
    );
    expect(told(done)).toMatch(
      /lost env_image_missing.*container swebatch-service-0-db.* does not have the image/,
    );
    expect(told(done)).toMatch(
      /full env_start_failed.*the service db of full is not running: it ended with exit code 137, out of memory/,
    );
    await expect.poll(podNames).toEqual([]);
  });

  test('leaves nothing when the program is killed: "clean" removes the pod, and "resume" works with services of its own', async () => {
    const dir = tempDir('pods-');
    harborTask(join(dir, 'tasks'), 'killed', FILES);
    await built(dir);
    const running = startCli(oracle(dir, 'k'), { env: { ...env, SWEBATCH_CRASH_AT: 'before_capture:1' } });
    expect((await running.done).signal).toBe('SIGKILL');
    const [pod, ...others] = podNames();
    expect(others).toEqual([]);
    const { spec } = JSON.parse(kubectl('get', pod!, '-o', 'json')) as { spec: Record<string, unknown> };
    expectHarmless(spec);
    const cleaned = await cli(['clean', '-o', join(dir, 'out')], { env });
    expect(told(cleaned)).not.toContain('could not');
    await expect.poll(podNames).toEqual([]);
    const resumed = await cli(['resume', 'k', '-o', join(dir, 'out')], { env });
    expect(told(resumed)).toMatch(/killed graded resolved/);
    await expect.poll(podNames).toEqual([]);
  });

  test('with a verifier of its own: what its commands collect beside the services is all that it gets', async () => {
    const dir = tempDir('pods-');
    harborTask(join(dir, 'tasks'), 'apart', {
      ...FILES,
      'task.toml': `${TOML}environment_mode = "separate"
[[verifier.collect]]
command = "python3 -c \\"from urllib.request import urlopen as u; print(u('http://web:8000/get').read().decode())\\" > /logs/artifacts/said"
timeout_sec = 30
`,
      'tests/Dockerfile': `FROM ${BASE_IMAGE}\nCOPY . /tests\n`,
      'tests/test.sh':
        '#!/bin/bash\nr=0; [ "$(cat /logs/artifacts/said)" = answer ] && ! getent hosts db && [ ! -e /shared ] && r=1\necho $r > /logs/verifier/reward.txt\n',
    });
    await built(dir);
    const done = await cli(oracle(dir, 'o'), { env });
    expect(told(done)).toMatch(/apart graded resolved/);
    await expect.poll(podNames).toEqual([]);
  });

  test('is judged beside what its agent left running, and "evaluate" says that only a new attempt can be', async () => {
    const dir = tempDir('pods-');
    harborTask(join(dir, 'tasks'), 'left', {
      ...FILES,
      'solution/solve.sh':
        '#!/bin/bash\n(cd /work && setsid python3 -m http.server 9000 >/dev/null 2>&1 &)\nsleep 1\n',
      // They reach it, and leave no reward.
      'tests/test.sh': `#!/bin/bash\n${ASK}\nask ready >/dev/null\npython3 -c 'from urllib.request import urlopen as u; print("left", u("http://127.0.0.1:9000/", timeout=5).status)'\n`,
    });
    await built(dir);
    const done = await cli(oracle(dir, 'o'), { env });
    expect(told(done)).toMatch(/left graded infra.*left 200/s);
    const again = await cli(['evaluate', 'o', '-o', join(dir, 'out')], { env });
    expect(told(again)).toMatch(
      /the services of left are gone: they end with the attempt, so only a new attempt can be graded/,
    );
    await expect.poll(podNames).toEqual([]);
  });

  test('that asks for the node, or for what one pod cannot give, is refused before there is a pod', async () => {
    const dir = tempDir('pods-');
    const lines = {
      path: ['volumes: ["/etc:/host:ro"]', 'it mounts /etc of the machine'],
      socket: ['volumes: ["/var/run/docker.sock:/s"]', 'it mounts /var/run/docker.sock of the machine'],
      privileged: ['privileged: true', 'no container gets rights of the machine'],
      network: ['network_mode: host', 'network_mode host is not taken'],
      again: ['restart: always', 'bad is restarted (restart: always)'],
      port: ['expose: [80]', 'main and bad both listen on port 80/tcp'],
    };
    for (const [id, [line]] of Object.entries(lines))
      harborTask(join(dir, 'tasks'), id, {
        'environment/docker-compose.yaml': `services: { main: { expose: [80] }, bad: { image: "debian:12", ${line} } }\n`,
      });
    const done = await cli(oracle(dir, 'o'), { env });
    expect(done.code).toBe(2);
    for (const [id, [, reason]] of Object.entries(lines))
      expect(told(done).split('\n')).toContainEqual(
        expect.stringMatching(new RegExp(`^  ${id}: .*${reason!.replaceAll(/[()]/g, '\\$&')}`)),
      );
    expect(podNames()).toEqual([]);
  });
});

/** Of every container: limits, and nothing of the node or of the cluster. */
function expectHarmless(spec: Record<string, unknown>): void {
  expect(spec).toMatchObject({
    automountServiceAccountToken: false,
    restartPolicy: 'Never',
  });
  const { hostNetwork = false, hostPID = false, hostIPC = false } = spec;
  expect([hostNetwork, hostPID, hostIPC]).toEqual([false, false, false]);
  const volumes = spec.volumes as Record<string, unknown>[];
  expect(new Set(volumes.flatMap((volume) => Object.keys(volume)))).toEqual(new Set(['name', 'emptyDir']));
  const containers = [
    ...(spec.containers as Record<string, unknown>[]),
    ...(spec.initContainers as Record<string, unknown>[]),
  ];
  expect(containers.map(({ name }) => name)).toEqual([
    ...['main', 'swebatch-service-0-db', 'swebatch-service-1-seed', 'swebatch-service-2-web'],
    ...['swebatch-fill-service-0-db', 'swebatch-fill-service-1-seed', 'swebatch-fill-main'],
  ]);
  for (const { securityContext, resources } of containers) {
    expect(securityContext).toMatchObject({ privileged: false, allowPrivilegeEscalation: false });
    expect(resources).toMatchObject({ limits: { cpu: expect.anything(), memory: expect.anything() } });
  }
}

describe('tests in pods that ask a model', () => {
  const answer = (response: ServerResponse) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050 };
    const body = { id: 'c', object: 'chat.completion', created: 1, model: 'judge-1', choices, usage };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    return true;
  };

  test('have their judge in the pod of their grading, and in that of the agent where services are', async () => {
    await using provider = await startFakeProvider([], (_seen, response) => answer(response));
    const dir = tempDir('pods-');
    const key = 'sk-judge-pods-5d1e77c0';
    const toml = `${TOML.replace('[environment]', `[environment]\ndocker_image = "${BASE_IMAGE}"`)}[verifier.env]
OPENAI_API_KEY = "\${OPENAI_API_KEY}"
OPENAI_BASE_URL = "\${OPENAI_BASE_URL:-https://api.openai.com/v1}"
`;
    const asks = `#!/bin/bash
python3 - <<'E' > /logs/verifier/reward.txt
import json, os
from urllib.request import Request, urlopen
body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Is it right?"}]}
head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
said = json.load(urlopen(Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), head), timeout=60))
print(int(said["choices"][0]["message"]["content"] == "yes"))
E
`;
    const task = { 'task.toml': toml, 'tests/test.sh': asks };
    harborTask(join(dir, 'tasks'), 'judged', task);
    harborTask(join(dir, 'tasks'), 'served', {
      ...task,
      'environment/docker-compose.yaml': `services: { db: { image: "${BASE_IMAGE}", command: sleep 1000 } }\n`,
    });
    const judge = {
      ...{ model_name: 'judge-1', base_url: `${provider.url}/v1`, prices: { input: 1, output: 2 } },
      ...{ api_key_env: 'JUDGE_KEY', retry: { max_retries: 0, max_retry_after_s: 0 } },
    };
    const config = join(dir, 'suite.yaml');
    writeFileSync(config, JSON.stringify({ suite: { judge } }));
    const done = await cli(oracle(dir, 'o', '-c', config), { env: { ...env, JUDGE_KEY: key } });
    for (const id of ['judged', 'served']) expect(told(done)).toMatch(new RegExp(`${id} graded resolved`));
    expect(provider.requests.map(({ headers, body }) => [headers.authorization, body.model])).toEqual(
      Array(2).fill([`Bearer ${key}`, 'judge-1']),
    );
    await expect.poll(podNames).toEqual([]);
  });
});
