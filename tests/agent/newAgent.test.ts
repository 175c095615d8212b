// A new agent is one file and one line. A copy of the sources gets one as CONTRIBUTING says, and the program of the copy runs an instance with it.

import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { REPO, tempDir } from '../support/cli.ts';

const AGENT = `import type { AgentKind } from './contract.ts';

/** It asks its model once, runs what comes back and leaves the work tree as its answer. */
export const toy: AgentKind = {
  leavesPatch: true,
  create: ({ model, environment, instanceId, callbacks }) => ({
    async run(task) {
      const asked = { role: 'user', content: task } as const;
      callbacks?.onStep?.({ instanceId, step: 1 });
      callbacks?.onMessage?.({ instanceId, step: 1 }, asked, 0);
      const answer = await model.query([asked]);
      if (!answer.success) throw new Error(answer.message);
      await environment.execute(answer.result.content);
      return { exitStatus: 'Submitted', submission: '', messages: [asked], steps: 1, costNano: 0 };
    },
  }),
};
`;

test('one file and one line make an agent, which a run names', { timeout: 120_000 }, async () => {
  const dir = tempDir('agent-');
  const copy = join(dir, 'swebatch');
  for (const part of ['src', 'package.json', 'configs', 'datasets'])
    cpSync(join(REPO, part), join(copy, part), { recursive: true });
  symlinkSync(join(REPO, 'node_modules'), join(copy, 'node_modules'));
  writeFileSync(join(copy, 'src/agent/toy.ts'), AGENT);
  const table = join(copy, 'src/agent/agents.ts');
  const opened = 'const AGENTS: Readonly<Record<string, AgentEntry>> = {\n';
  const text = readFileSync(table, 'utf8');
  expect(text).toContain(opened);
  const line = `  toy: { load: async () => (await import('./toy.ts')).toy },\n`;
  writeFileSync(table, text.replace(opened, `${opened}${line}`));
  const repo = join(dir, 'repo');
  execFileSync('git', ['init', '-q', repo]);
  writeFileSync(join(repo, 'README'), 'toy\n');
  const git = (...words: string[]) =>
    execFileSync('git', ['-C', repo, '-c', 'user.name=t', '-c', 'user.email=t@example.org', ...words]);
  git('add', '.');
  git('commit', '-qm', 'begin');
  const row = {
    instance_id: 'toy-1',
    ...{ repo: 'toy/toy', base_commit: 'HEAD', problem_statement: 'Say hello.', patch: '', test_patch: '' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [], version: '1' },
  };
  writeFileSync(join(dir, 'toys.jsonl'), `${JSON.stringify(row)}\n`);
  const replies = [{ content: 'echo hello > said.txt' }];
  writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies }));
  const env = { ...process.env, XDG_CACHE_HOME: join(dir, 'cache'), NO_COLOR: '1' };
  const args = [
    ...['run', '--subset', 'toys.jsonl', '-m', 'scripted:replies.json', '--run-id', 'toys', '-o', 'out'],
    ...['-c', 'agent.agent_class=toy', '-c', 'environment.environment_class=local'],
    ...['-c', `environment.cwd=${repo}`, '-c', 'run.retry.attempts=1', '--progress', 'none'],
  ];
  const ran = await promisify(execFile)(process.execPath, [join(copy, 'src/cli/bin.ts'), ...args], {
    cwd: dir,
    env,
  }).catch((error: { stdout: string; stderr: string }) => error);
  const predictions = join(dir, 'out', 'toys', 'preds.json');
  expect(existsSync(predictions), ran.stderr).toBe(true);
  expect(JSON.parse(readFileSync(predictions, 'utf8'))['toy-1'].model_patch, ran.stderr).toContain(
    '+hello\n',
  );
});
