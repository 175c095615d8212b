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

  test('and the agent have users of their own: of the agent none but what it started itself is there when the tests look', async () => {
    const dir = tempDir('users-');
    const tasks = join(dir, 'tasks');
    const toml = (agent: string, verifier: string) =>
      TOML.replace(
        /command = .*/,
        'command = "test \\"$(id -un)\\" = \\"$(cat /owner)\\" && echo healthy > /srv/healthy"',
      )
        .replace('user = "nobody"', agent)
        .replace(/\[verifier\]/, `[verifier]\n${verifier}`);
    const file = (owner: string) =>
      `FROM ${BASE_IMAGE}\nRUN mkdir -p /srv /work /tests && chmod 777 /srv /work && echo ${owner} > /owner && chown daemon /work\nWORKDIR /work\nCOPY serve.sh /serve.sh\nRUN chmod +x /serve.sh\nENTRYPOINT ["/serve.sh"]\nUSER ${owner}\n`;
    const looks = (user: string, running: string) => `#!/bin/bash
found=
for p in /proc/[0-9]*; do
  [ "$(stat -c %U $p 2>/dev/null)" = nobody ] && found="$found$(tr '\\0' ' ' < $p/cmdline);"
done
echo "$(id -un), beside $(cat /srv/entry), $found"
[ "$(id -un)" = ${user} ] && [ "$found" = '${running}' ] && r=1 || r=0
echo $r > /logs/verifier/reward.txt
`;
    const serve = '#!/bin/sh\necho $(id -un) $$ >> /srv/entry\nexec "$@"\n';
    const solve = (running = '') => `#!/bin/bash
set -e
[ "$(id -un)/$HOME" = nobody/nonexistent ] || [ "$(id -un)/$HOME" = nobody//nonexistent ]
[ "$(cat /srv/healthy)" = healthy ]
${running}
`;
    const LEFT = 'setsid sleep 4321 > /dev/null 2>&1 < /dev/null &';
    const task = (id: string, owner: string, parts: { toml: string; solve: string; test: string }) =>
      harborTask(tasks, id, {
        'task.toml': parts.toml,
        'environment/Dockerfile':
          id === 'fresh' ? file(owner).replace(/ENTRYPOINT.*/, 'RUN echo none > /srv/entry') : file(owner),
        'environment/serve.sh': serve,
        'solution/solve.sh': parts.solve,
        'tests/test.sh': parts.test,
      });
    const nobody = 'user = "nobody"';
    task('quiet', 'root', { toml: toml(nobody, 'user = "root"'), solve: solve(), test: looks('root', '') });
    task('leaves', 'root', {
      toml: toml(nobody, ''),
      solve: solve(LEFT),
      test: looks('root', 'sleep 4321 ;'),
    });
    // Neither Harbor's agent nor its verifier is root where the image is somebody else's.
    task('owned', 'daemon', { toml: toml(nobody, ''), solve: solve(), test: looks('daemon', '') });
    // Nothing runs there any more: the tests work in a new container.
    task('fresh', 'daemon', { toml: toml(nobody, ''), solve: solve(), test: looks('daemon', '') });
    task('rooted', 'daemon', {
      toml: toml(nobody, 'user = "root"'),
      solve: solve(LEFT),
      test: looks('root', 'sleep 4321 ;'),
    });
    const out = join(dir, 'out');
    const gold = await cli(['evaluate', 'gold', '--subset', tasks, '-o', out, '-w', '4']);
    for (const id of ['quiet', 'leaves', 'owned', 'fresh', 'rooted'])
      expect(gold.stderr).toMatch(new RegExp(`${id} +resolved`));
  });

  test('goes on between steps where the agent is another user, and has settled anew where it was ended with the agent', async () => {
    const dir = tempDir('entry-');
    const tasks = join(dir, 'tasks');
    const toml = (user: string) =>
      `${TOML.replace(/\[environment\.healthcheck\][^[]+/, '').replace('user = "nobody"\n', user)}[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n`;
    const serve = `#!/bin/sh
rm -f /srv/up; echo $$ >> /srv/entry
(i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo up > /srv/up; exec sleep 600) &
exec "$@"
`;
    const task = (id: string, user: string, two: string) =>
      harborTask(tasks, id, {
        'task.toml': toml(user),
        'environment/Dockerfile': dockerfile('serve.sh'),
        'environment/serve.sh': serve,
        'tests/test.sh': null,
        'steps/one/instruction.md': 'One.\n',
        'steps/one/solution/solve.sh':
          '#!/bin/bash\necho 1 > /work/one\nsetsid sleep 4321 > /dev/null 2>&1 < /dev/null &\n',
        'steps/one/tests/test.sh': '#!/bin/bash\ncat /work/one > /logs/verifier/reward.txt\n',
        'steps/two/instruction.md': 'Two.\n',
        'steps/two/workdir/setup.sh': '#!/bin/bash\nid -un > setup\n',
        'steps/two/solution/solve.sh': `#!/bin/bash
set -e
! grep -qs 4321 /proc/[0-9]*/cmdline
[ "$(cat /srv/up)" = up ]
[ -e /proc/$(tail -n 1 /srv/entry) ]
${two}
echo 1 > /work/two
`,
        'steps/two/tests/test.sh': '#!/bin/bash\ncat /work/two > /logs/verifier/reward.txt\n',
      });
    task(
      'other',
      'user = "nobody"\n',
      '[ "$(cat setup)/$(id -un)/$(wc -l < /srv/entry)" = nobody/nobody/1 ]',
    );
    task('same', '', '[ "$(cat setup)/$(id -un)/$(wc -l < /srv/entry)" = root/root/2 ]');
    const gold = await cli(['evaluate', 'gold', '--subset', tasks, '-o', join(dir, 'out'), '-w', '2']);
    for (const id of ['other', 'same']) expect(gold.stderr).toMatch(new RegExp(`${id} +resolved`));
  });
});
