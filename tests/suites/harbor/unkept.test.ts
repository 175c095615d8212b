// What no image of a container keeps, and what must not become one: tests find it all the same, as Harbor's do, or the task is refused by a reason.
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { cli, tempDir } from '../../support/cli.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const available = await dockerAvailable();

const toml = (more = '', environment = '') => `schema_version = "1.3"
[environment]
network_mode = "no-network"
${environment}
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 60
${more}`;
const dockerfile = (more = '') => `FROM ${BASE_IMAGE}\nRUN mkdir -p /work /data\nWORKDIR /work\n${more}\n`;
const FOUND = (path: string) =>
  `#!/bin/bash\n[ "$(cat ${path})" = 42 ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n`;
const LEAVES = (path: string, more = '') => `#!/bin/bash\necho 42 > ${path}\n${more}\n`;
const SMALL_DISK = 'storage_mb = 150\n';
const SPARSE = 'truncate -s 1G /tmp/sparse';

function rows(out: string, sql: string): Record<string, unknown>[] {
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  try {
    return db.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    db.close();
  }
}

describe.skipIf(!available)('what an image of the container would not have', () => {
  test('is judged in the container itself, or the task is refused by that name', async () => {
    const dir = tempDir('unkept-');
    const tasks = join(dir, 'tasks');
    const task = (id: string, leaves: string, finds: string, more: Record<string, string> = {}) =>
      harborTask(tasks, id, {
        'task.toml': toml(),
        'environment/Dockerfile': dockerfile(),
        'solution/solve.sh': leaves,
        'tests/test.sh': finds,
        ...more,
      });
    const VOLUME = { 'environment/Dockerfile': dockerfile('VOLUME /data') };
    task('volume', LEAVES('/data/answer'), FOUND('/data/answer'), VOLUME);
    task(
      'hosts',
      LEAVES('answer', 'echo "127.0.0.2 made.example" >> /etc/hosts'),
      FOUND('<(grep -c made.example /etc/hosts | sed s/1/42/)'),
    );
    task(
      'list',
      LEAVES('answer', "python3 -c \"import os; os.setxattr('answer', 'user.made', b'42')\""),
      FOUND(`<(python3 -c "import os; print(os.getxattr('/work/answer', 'user.made').decode())")`),
    );
    task('memory', LEAVES('/dev/shm/answer'), FOUND('/dev/shm/answer'));
    task(
      'queue',
      LEAVES('answer', 'touch /dev/mqueue/q'),
      FOUND('/work/$(cd /dev/mqueue; ls | sed s/q/answer/)'),
    );
    task('device', LEAVES('answer', 'ln -s /work/answer /dev/made'), FOUND('/dev/made'));
    task(
      'tests',
      LEAVES('answer', 'echo bad > /tests/conftest.py'),
      FOUND('$(ls /tests/c* || echo answer)'),
      {
        'environment/Dockerfile': dockerfile('VOLUME /tests'),
      },
    );
    task('apart', LEAVES('/data/answer'), FOUND('/data/answer'), {
      ...VOLUME,
      'task.toml': toml('network_mode = "public"\n'),
    });
    task('collects', LEAVES('/data/answer'), FOUND('/data/answer'), {
      ...VOLUME,
      'task.toml': `artifacts = ["/data"]\n${toml(
        'environment_mode = "separate"\n[verifier.environment]\nnetwork_mode = "no-network"\n',
      )}`,
      'tests/Dockerfile': `FROM ${BASE_IMAGE}\nCOPY test.sh /tests/test.sh\nRUN chmod +x /tests/test.sh && mkdir /data\nVOLUME /data\n`,
    });
    // A program that tests run is still told where it was replaced.
    task(
      'forges',
      LEAVES(
        '/data/answer',
        `printf '#!/bin/sh\\necho 42\\n' > /usr/local/bin/cat; chmod +x /usr/local/bin/cat; rm /data/answer`,
      ),
      FOUND('/data/answer'),
      VOLUME,
    );
    task('sparse', LEAVES('answer', SPARSE), FOUND('/work/answer'), { 'task.toml': toml('', SMALL_DISK) });
    task('long', LEAVES('answer', SPARSE), FOUND('/work/answer'), {
      'task.toml': toml('network_mode = "public"\n', SMALL_DISK),
    });
    const out = join(dir, 'out');
    const how = [
      '-c',
      'agent.agent_class=oracle',
      '-c',
      'run.retry.attempts=1',
      '--run-id',
      'o',
      '--evaluate',
    ];
    const run = await cli(['run', '--subset', tasks, '-o', out, '-w', '3', ...how]);
    expect(run.stderr).toMatch(/apart env_start_failed .*without what lies in \/data: its image says VOLUME/);
    const verdicts = rows(
      out,
      'SELECT instance_id, outcome, error_message, suspicion FROM evaluations ORDER BY 1',
    );
    const flags = z.array(z.object({ rule: z.string(), strict: z.boolean() }));
    expect(
      verdicts.map(({ instance_id, outcome, error_message, suspicion }) => [
        instance_id,
        outcome,
        error_message,
        ...flags.parse(JSON.parse(String(suspicion))).map(({ rule, strict }) => `${rule} ${strict}`),
      ]),
    ).toEqual([
      ['collects', 'resolved', null],
      ['device', 'resolved', null],
      ['forges', 'resolved', null, 'touches_verifier true'],
      ['hosts', 'resolved', null],
      ['list', 'resolved', null],
      [
        'long',
        'invalid',
        expect.stringMatching(/^long: its files are 1 GB long with their holes/),
        'ended_environment true',
      ],
      ['memory', 'resolved', null],
      ['queue', 'resolved', null],
      ['sparse', 'resolved', null],
      ['tests', 'resolved', null],
      ['volume', 'resolved', null],
    ]);
    const notes = rows(
      out,
      "SELECT notes FROM attempts WHERE notes LIKE '%its tests run in the container itself%'",
    );
    expect(notes.map(({ notes: said }) => String(said)).join()).toMatch(
      /VOLUME of its image.*\/dev\/shm\/answer/s,
    );
    // A patch alone, which is what is left, would say less.
    const again = await cli(['evaluate', 'o', '-o', out, '--again']);
    expect(again.stdout + again.stderr).toMatch(/verdicts stand/);
    // No image was made.
    const named = rows(out, 'SELECT work_image FROM attempts WHERE work_image IS NOT NULL');
    expect(named).toHaveLength(11);
    for (const { work_image } of named)
      await expect(docker.getImage(String(work_image)).inspect()).rejects.toMatchObject({ statusCode: 404 });
  });
});
