// The oracle and nop: what the solutions of tasks do where an agent would work. In real containers.
import { readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { PATCHES, SUM_REPO_SCRIPT, sumRow } from '../grading/fixtures/sumRepo.ts';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { derivedImage } from '../support/dockerEnvironment.ts';
import { harborTask } from '../support/kinds/harborTask.ts';

const available = await dockerAvailable();

interface Part {
  arm: string;
  epoch: number;
  report: { resolved_ids: string[]; unresolved_ids: string[] };
}

describe.skipIf(!available)('solutions of tasks', () => {
  let image = '';
  beforeAll(async () => {
    image = await derivedImage('mkdir -p /work && chmod 777 /work');
  });
  const toml = (more = '') =>
    `schema_version = "1.3"\n[environment]\ndocker_image = "${image}"\nworkdir = "/work"\nnetwork_mode = "no-network"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n${more}`;
  const CHECK =
    '#!/bin/bash\n[ "$(cat /work/answer.txt 2>/dev/null)" = yes ] && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n';
  const solve = (script: string) => `#!/bin/bash\n${script}\n`;

  test('gold of Harbor tasks runs solution/solve.sh; what fails, passes untouched or brings none is told by check and by later runs', async () => {
    const dir = tempDir('oracle-');
    const tasks = join(dir, 'tasks');
    const task = (id: string, files: Record<string, string | null>) =>
      harborTask(tasks, id, { 'task.toml': toml(), 'tests/test.sh': CHECK, ...files });
    task('by-file', {
      'solution/solve.sh': solve('cp "$(dirname "$0")/answer" /work/answer.txt'),
      'solution/answer': 'yes\n',
    });
    task('by-variable', {
      'task.toml': toml('[solution.env]\nANSWER = "yes"\n'),
      'solution/solve.sh': solve('pwd >&2; echo "$ANSWER" > answer.txt'),
    });
    task('wrong', { 'solution/solve.sh': solve('echo no > answer.txt; echo it gave up >&2; exit 3') });
    task('untouched', {
      'solution/solve.sh': solve('true'),
      'tests/test.sh': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
    });
    task('without', { 'solution/solve.sh': null });
    const out = join(dir, 'out');
    const gold = await cli(['evaluate', '--verify-gold', '--subset', tasks, '--repeat', '2', '-o', out]);
    expect(gold.code, gold.stderr).toBe(0);
    expect(gold.stderr).toContain('without: it brings no solution that could be applied');
    expect(gold.stderr).toMatch(/gold passes on this machine for 3 of 4/);
    expect(gold.stdout).toMatch(/wrong +fails +0 of 2/);

    const [run] = readdirSync(out).filter((name) => name.startsWith('evaluate-gold-'));
    const nop = await cli([
      ...['run', '--subset', tasks, '-o', out, '--run-id', 'nothing', '-w', '2', '--evaluate'],
      ...['-c', 'agent.agent_class=nop'],
    ]);
    expect(nop.code, nop.stderr).toBe(0);
    const shown = await cli(['show', run!, 'wrong', '-o', out]);
    expect(shown.stdout).toContain('solution/solve.sh ended with exit code 3; its last output: it gave up');

    const checked = await cli(['datasets', 'check', tasks, '-o', out, '--json']);
    expect(JSON.parse(checked.stdout).oracle).toEqual({
      passes: 2,
      tried: 4,
      others: expect.arrayContaining([
        { instance_id: 'wrong', standing: 'fails', why: null },
        { instance_id: 'untouched', standing: 'untouched', why: null },
      ]) as unknown,
    });
    const text = await cli(['datasets', 'check', tasks, '-o', out]);
    expect(text.stdout).toMatch(/the solution passes here for 2 of the \d that were tried/);
    const report = await cli(['report', 'nothing', '-o', out]);
    expect(report.stdout).toContain('Passes here without any work (1): untouched');
  });

  test('what no engine here can give is told by check, by gold and by the grading of predictions alike', async () => {
    const dir = tempDir('oracle-');
    const more = (room: string) => toml().replace('[agent]', `${room}\n[agent]`);
    harborTask(join(dir, 'tasks'), 'many', { 'task.toml': more('cpus = 512') });
    harborTask(join(dir, 'tasks'), 'large', { 'task.toml': more('memory_mb = 99999999') });
    const preds = ['many', 'large'].map((instance_id) => ({
      instance_id,
      model_name_or_path: 'm',
      model_patch: PATCHES.gold,
    }));
    writeFileSync(join(dir, 'preds.json'), JSON.stringify(preds));
    const check = await cli(['datasets', 'check', 'tasks'], { cwd: dir });
    expect([check.code, check.stdout]).toEqual([1, expect.stringContaining('0 can be graded')]);
    const gold = await cli(['evaluate', 'gold', '--subset', 'tasks'], { cwd: dir });
    const graded = await cli(['evaluate', 'preds.json', '--subset', 'tasks'], { cwd: dir });
    for (const said of [check.stdout, gold.stderr, graded.stderr]) {
      expect(said).toMatch(/it asks for 512 processors, and the engine has \d+/);
      expect(said).toMatch(/it asks for 97656\.2 GiB of memory, and the engine has [\d.]+ GiB/);
    }
    expect([gold.code, graded.code]).toEqual([2, 2]);
  });

  test('the gold patch of a row is applied where an agent works; arms of both agents need no model', async () => {
    const dir = tempDir('oracle-');
    const sum = await derivedImage(SUM_REPO_SCRIPT);
    const row = (id: string, patch: string) =>
      JSON.stringify(sumRow(sum, undefined, { instance_id: id, patch }));
    const torn = PATCHES.gold.replaceAll('return a - b', 'return nowhere');
    writeFileSync(
      join(dir, 'data.jsonl'),
      [row('demo__sum-1', PATCHES.gold), row('demo__sum-2', torn), ''].join('\n'),
    );
    writeFileSync(
      join(dir, 'arms.yaml'),
      'arms:\n  - agent: { agent_class: oracle }\n  - agent: { agent_class: nop }\n',
    );
    const done = await cli(
      ['run', '--subset', 'data.jsonl', '-c', 'arms.yaml', '--run-id', 'both', '--evaluate', '-w', '2'],
      { cwd: dir },
    );
    expect(done.code, done.stderr).toBe(0);
    expect(done.stderr).not.toMatch(/no model/);
    const scored = await cli(['evaluate', 'both', '--json'], { cwd: dir });
    const parts = JSON.parse(scored.stdout) as Part[];
    expect(parts.map(({ arm, report }) => [arm, report.resolved_ids])).toEqual([
      ['oracle', ['demo__sum-1']],
      ['nop', []],
    ]);
    const torn2 = await cli(['show', 'both/oracle', 'demo__sum-2'], { cwd: dir });
    expect(torn2.stdout).toContain('the gold patch does not apply where an agent works');
    expect(done.stderr.trim().split('\n').at(-1)).toMatch(
      /^resolved: oracle 1\/2 = 50\.0 % \[.*\] · nop 0\/2 = 0\.0 % \[.*\]; next: "swebatch compare both"$/,
    );

    // By what people mean: a verdict, an arm, a part of an id.
    const failed = await cli(['ls', '--outcome', 'apply_failed'], { cwd: dir });
    expect(failed.stdout).toMatch(/first error\n[- ]+\ndemo__sum-2 +oracle .*apply_failed .*\w/);
    const json = await cli(['ls', 'both', '--outcome', 'empty_patch', '--json'], { cwd: dir });
    expect(JSON.parse(json.stdout)).toMatchObject([
      { arm: 'nop', instance_id: 'demo__sum-1', first_error: expect.stringContaining('It left no patch') },
      { arm: 'nop', instance_id: 'demo__sum-2' },
    ]);
    const one = await cli(['evaluate', 'both', '-i', 'sum-1', '--again'], { cwd: dir });
    // One of each arm.
    expect(one.stderr.match(/\[\d\/\d\] demo__sum-\d/g)).toEqual(['[1/2] demo__sum-1', '[2/2] demo__sum-1']);
    const beside = await cli(['compare', 'both', '--instance', 'sum-2'], { cwd: dir });
    expect(beside.stdout).toMatch(/^demo__sum-2/);
    const again = async (...words: string[]) => {
      const { code, stderr } = await cli(['resume', 'both', ...words], { cwd: dir });
      return [code, /(no|\d+) sealed trial/.exec(stderr)?.[1], /is no pass@1/.test(stderr)];
    };
    expect(await again('--retry', 'apply_failed')).toEqual([0, '1', true]);
    expect(await again('--retry', 'unresolved')).toEqual([0, 'no', false]);
    expect(await again('--retry', '--id', 'sum-1')).toEqual([0, '2', false]);
    const rest = async (selector: string) => {
      const planned = await cli(
        ['run', '--failed-in', selector, '-c', 'agent.agent_class=nop', '--dry-run', '--json'],
        { cwd: dir },
      );
      const { instances } = JSON.parse(planned.stdout) as { instances: { instance_id: string }[] };
      return instances.map(({ instance_id }) => instance_id);
    };
    expect(await rest('both/oracle')).toEqual(['demo__sum-2']);
    expect(await rest('both/nop')).toEqual(['demo__sum-1', 'demo__sum-2']);
  });

  test('a solution is shown to nobody else, cannot lead out of its task, and has no more time than the agent', async () => {
    const dir = tempDir('oracle-');
    const tasks = join(dir, 'tasks');
    const files = { 'task.toml': toml(), 'tests/test.sh': CHECK };
    const slow = toml().replace('timeout_sec = 60', 'timeout_sec = 2');
    harborTask(tasks, 'slow', {
      ...files,
      'task.toml': slow,
      'solution/solve.sh': solve('sleep 60; echo yes > answer.txt'),
    });
    const outside = harborTask(tasks, 'outside', files);
    rmSync(join(outside, 'solution/solve.sh'));
    symlinkSync('/etc/hostname', join(outside, 'solution/solve.sh'));
    harborTask(tasks, 'honest', { ...files, 'solution/solve.sh': solve('echo yes > answer.txt') });
    const out = join(dir, 'out');
    const gold = await cli(['evaluate', 'gold', '--subset', tasks, '-o', out, '--json']);
    expect(gold.code, gold.stderr).toBe(1);
    expect(gold.stderr).toMatch(
      /1 task is not resolved by the task's own solution: slow; "swebatch show \S+ slow/,
    );
    expect(gold.stderr).toContain('leads out of the task');
    const [part] = JSON.parse(gold.stdout) as Part[];
    expect(part!.report).toMatchObject({ resolved_ids: ['honest'], unresolved_ids: ['slow'] });
    const replies = join(dir, 'replies.json');
    const looks = 'ls / /solution /logs 2>&1; grep -rl "echo yes" /work /tmp /opt 2>/dev/null; echo looked';
    writeFileSync(
      replies,
      JSON.stringify({
        replies: [
          { content: `\`\`\`bash\n${looks}\n\`\`\`` },
          { content: '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```' },
        ],
      }),
    );
    const other = await cli([
      ...[
        'run',
        '--subset',
        tasks,
        '-i',
        'honest',
        '-m',
        `scripted:${replies}`,
        '-o',
        out,
        '--run-id',
        'other',
      ],
      ...['--evaluate'],
    ]);
    expect(other.code, other.stderr).toBe(0);
    const shown = await cli(['show', 'other', 'honest', '-o', out]);
    expect(shown.stdout).toContain("cannot access '/solution'");
    expect(shown.stdout).not.toContain('solve.sh');
  });
});
