// Images of Harbor tasks that are built from their folders: once for equal folders, with the log's end where a build fails.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const available = await dockerAvailable();

const SUBMIT = '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```';

describe.skipIf(!available)('images from Dockerfiles', () => {
  test('the agent works and the verifier judges in built images; a build that fails costs its own task alone', async () => {
    const dir = tempDir();
    const mark = `built-${process.pid}-${Date.now()}`;
    const dockerfile = `FROM ${BASE_IMAGE}\nCOPY start.txt /app/start.txt\nRUN echo ${mark} > /app/mark\nWORKDIR /app\n`;
    const files = {
      'task.toml':
        '[verifier]\nenvironment_mode = "separate"\n[[verifier.collect]]\ncommand = "cp start.txt mark /logs/artifacts/"\n',
      'environment/Dockerfile': dockerfile,
      'environment/start.txt': 'start\n',
      'tests/Dockerfile': `FROM ${BASE_IMAGE}\nCOPY . /tests/\n`,
      'tests/test.sh': `#!/bin/bash\ngrep -q ${mark} /logs/artifacts/mark && grep -q start /logs/artifacts/start.txt && echo 1 > /logs/verifier/reward.txt\n`,
    };
    for (const id of ['built', 'built-too']) harborTask(join(dir, 'tasks'), id, files);
    // Only BuildKit knows a mount, and its log is of another form.
    harborTask(join(dir, 'tasks'), 'mounted', {
      ...files,
      'environment/Dockerfile': dockerfile.replace(
        'WORKDIR',
        'RUN --mount=type=tmpfs,target=/scratch touch /scratch/x && ls /scratch > /app/seen && test $(cat /app/seen) = x\nWORKDIR',
      ),
    });
    harborTask(join(dir, 'tasks'), 'mounted-broken', {
      'task.toml': '',
      'environment/Dockerfile': `FROM ${BASE_IMAGE}\nRUN --mount=type=tmpfs,target=/scratch echo mounted and wrong; exit 7\n`,
    });
    harborTask(join(dir, 'tasks'), 'broken', {
      'task.toml': '',
      'environment/Dockerfile': `FROM ${BASE_IMAGE}\nRUN echo this goes wrong; exit 7\n`,
    });
    mkdirSync(join(dir, 'model'));
    for (const id of ['built', 'built-too', 'broken', 'mounted', 'mounted-broken'])
      writeFileSync(
        join(dir, 'model', `${id}.json`),
        JSON.stringify({ replies: [{ content: SUBMIT, finish_reason: 'stop' }] }),
      );
    const state = join(dir, 'state');
    const planned = await cli(['images', 'plan', join(dir, 'tasks')], { env: { XDG_STATE_HOME: state } });
    expect(planned.stdout, planned.stderr).toContain('5 images: 0 here, 5 to build');
    const done = await cli(
      [
        ...['run', '--subset', join(dir, 'tasks'), '--model', `scripted:${join(dir, 'model')}`, '-o', dir],
        ...[
          '--run-id',
          'r1',
          '-w',
          '2',
          '--evaluate',
          '-c',
          'run.retry.attempts=1',
          '-c',
          'agent.step_limit=3',
        ],
      ],
      { env: { XDG_STATE_HOME: state } },
    );
    const db = new Database(join(dir, 'swebatch.db'), { readonly: true });
    const verdicts = db
      .prepare('SELECT instance_id, outcome, error_message FROM evaluations ORDER BY 1')
      .all();
    const ends = db
      .prepare(`SELECT exit_class, error_message FROM attempts WHERE exit_reason <> 'submitted'`)
      .all() as { exit_class: string; error_message: string }[];
    db.close();
    expect(verdicts, done.stderr).toEqual(
      ['built', 'built-too', 'mounted'].map((id) => ({
        instance_id: id,
        outcome: 'resolved',
        error_message: null,
      })),
    );
    expect(ends[0]).toMatchObject({
      exit_class: 'infra',
      error_message: expect.stringContaining('this goes wrong'),
    });
    expect(ends[0]!.error_message).toContain('could not be built');
    expect(ends.map(({ error_message }) => error_message).join('\n')).toContain('mounted and wrong');
    const made = (await docker.listImages({ filters: { label: ['swebatch.build'] } })).filter(
      ({ Created }) => Created * 1000 > Date.now() - 600_000,
    );
    for (const { RepoTags } of made)
      for (const tag of RepoTags ?? [])
        await docker
          .getImage(tag)
          .remove({ force: true })
          .catch(() => undefined);
  }, 120_000);
});
