// Skills that a task brings in a folder of its container: they reach an agent that takes skills, and refuse the task with any other.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';
import { reply, SUBMIT } from '../../support/kinds/sixTasks.ts';

const available = await dockerAvailable();
const DESCRIPTION = 'How forms are filled in at the zebra office.';

function taskWithSkills(dir: string): string {
  const tasks = join(dir, 'tasks');
  harborTask(tasks, 'skilled', {
    'task.toml':
      'schema_version = "1.3"\n[environment]\nnetwork_mode = "no-network"\nskills_dir = "/skills"\n',
    'environment/Dockerfile': `FROM ${BASE_IMAGE}
RUN mkdir -p /work /skills/forms /skills/empty && printf -- '---\\nname: forms\\ndescription: ${DESCRIPTION}\\n---\\n' > /skills/forms/SKILL.md \\
 && printf 'echo 42\\n' > /skills/forms/answer.sh && chmod 755 /skills/forms/answer.sh
WORKDIR /work
`,
    'tests/test.sh': '#!/bin/bash\ngrep -qx 42 answer; echo $((1-$?)) > /logs/verifier/reward.txt\n',
  });
  return tasks;
}

describe.skipIf(!available)('skills of a task', () => {
  test('are in the prompt of the built-in agent, and run from where it says', async () => {
    const dir = tempDir('skills-');
    const [tasks, out, model] = [taskWithSkills(dir), join(dir, 'out'), join(dir, 'model')];
    mkdirSync(model);
    const work = 'bash /opt/swebatch-equipment/skills/forms/answer.sh > answer';
    writeFileSync(join(model, 'skilled.json'), JSON.stringify({ replies: [work, SUBMIT].map(reply) }));
    const args = ['--model', `scripted:${model}`, '-o', out, '--run-id', 'r', '--evaluate'];
    const run = await cli(['run', '--subset', tasks, ...args]);
    expect(run.stdout + run.stderr).toMatch(/skilled graded resolved/);
    const said = (await cli(['show', 'r', 'skilled', '-o', out, '--full', '--json'])).stdout;
    expect(said).toContain(`- forms: ${DESCRIPTION} (/opt/swebatch-equipment/skills/forms/SKILL.md)`);
    expect(said).not.toContain('- empty');
  });

  test('refuse the task where its agent takes none', async () => {
    const dir = tempDir('skills-');
    const command = ['-c', 'agent.agent_class=command', '-c', 'agent.command=exit 0', '-m', 'openai/x'];
    const run = await cli(['run', '--subset', taskWithSkills(dir), '-o', join(dir, 'out'), ...command]);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('skilled: it has skills, and agent.command does not say where they go');
  });
});
