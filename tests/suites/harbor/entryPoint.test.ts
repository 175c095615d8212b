// A task whose image starts a server by its ENTRYPOINT, as one of Harbor's cookbook does: the agent and the tests find it running.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const available = await dockerAvailable();

const TOML = `schema_version = "1.3"
[environment]
network_mode = "no-network"
[environment.healthcheck]
command = "python3 -c 'from urllib.request import urlopen as u; u(\\"http://127.0.0.1:8080/\\")'"
interval_sec = 0.2
retries = 100
[agent]
timeout_sec = 60
user = "nobody"
[verifier]
timeout_sec = 60
`;
const dockerfile = (serve: string) =>
  `FROM ${BASE_IMAGE}\nRUN mkdir -p /srv /work && chmod 777 /srv /work\nWORKDIR /work\nCOPY ${serve} /serve.sh\nRUN chmod +x /serve.sh\nENTRYPOINT ["/serve.sh"]\nCMD ["never"]\n`;
const SERVE = `#!/bin/sh
echo "$@" > /srv/given; id -u > /srv/user; pwd > /srv/folder
(cd /srv && exec python3 -m http.server 8080) >/dev/null 2>&1 &
exec "$@"
`;
const ASK = `ask() { python3 -c 'import sys; from urllib.request import urlopen as u; print(u("http://127.0.0.1:8080/" + sys.argv[1]).read().decode().strip())' "$1"; }`;
const TESTS = `#!/bin/bash
${ASK}
for i in $(seq 80); do { : </dev/tcp/127.0.0.1/8080; } 2>/dev/null && break; sleep 0.25; done
r=0
[ "$(ask given)/$(ask user)/$(ask folder)" = 'sh -c sleep infinity/0//work' ] && [ "$(ask answer)" = yes ] && r=1
echo $r > /logs/verifier/reward.txt
`;

describe.skipIf(!available)('an image with an ENTRYPOINT', () => {
  test('is started with what Harbor gives it, as its own user, beside the agent and beside the tests', async () => {
    const dir = tempDir('entry-');
    const tasks = join(dir, 'tasks');
    harborTask(tasks, 'serves', {
      'task.toml': TOML,
      'environment/Dockerfile': dockerfile('serve.sh'),
      'environment/serve.sh': SERVE,
      'solution/solve.sh': `#!/bin/bash\nset -e\n${ASK}\n[ "$(id -un)" = nobody ]\n[ "$(ask folder)" = /work ]\necho yes > /srv/answer\n`,
      'tests/test.sh': TESTS,
    });
    harborTask(tasks, 'breaks', {
      'task.toml': TOML.replace(/\[environment\.healthcheck\][^[]+/, ''),
      'environment/Dockerfile': dockerfile('serve.sh'),
      'environment/serve.sh': '#!/bin/sh\nexit 7\n',
      'tests/test.sh': TESTS,
    });
    const run = ['run', '--subset', tasks, '-o', join(dir, 'out'), '-w', '2', '--evaluate', '--json'];
    const oracle = await cli([
      ...run,
      '--run-id',
      'o',
      '-c',
      'agent.agent_class=oracle',
      '-c',
      'run.retry.attempts=1',
    ]);
    expect(oracle.stdout + oracle.stderr).toContain(
      'the ENTRYPOINT of its image (/serve.sh) ended with exit code 7; start the image by itself',
    );
    expect(oracle.stderr).toMatch(/serves graded resolved/);
  });

  test('has settled before anybody works, also where the task has no healthcheck', async () => {
    const dir = tempDir('entry-');
    const tasks = join(dir, 'tasks');
    // As the interpreter of a server that is loading: it works, and then it waits.
    const slow = `#!/bin/sh\n(i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo up > /srv/up; exec sleep 600) &\nexec "$@"\n`;
    const isUp = '[ "$(cat /srv/up 2>/dev/null)" = up ]';
    harborTask(tasks, 'slow', {
      'task.toml': TOML.replace(/\[environment\.healthcheck\][^[]+/, ''),
      'environment/Dockerfile': dockerfile('serve.sh'),
      'environment/serve.sh': slow,
      'solution/solve.sh': `#!/bin/bash\n${isUp} && echo yes > /work/answer\n`,
      'tests/test.sh':
        '#!/bin/bash\n[ -e /work/answer ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n',
    });
    const gold = await cli(['evaluate', 'gold', '--subset', tasks, '-o', join(dir, 'out')]);
    expect(gold.stderr).toMatch(/slow +resolved/);
  });
});
