// configs/agents.yaml as it is shipped: the built-in loop, Codex and Claude Code on one model in one run, over two epochs, graded and compared.
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { AGENTS, addedFromNpm, byInstance, REAL_KEY, solve } from '../support/agents/agentBench.ts';
import { startFakeProvider, type Turn } from '../support/agents/playedProvider.ts';
import { cli, REPO, tempDir } from '../support/cli.ts';

const IDS = ['swebatch__tabular-23', 'swebatch__cronwheel-25'];
const LOOK = 'git log --all -p | head -5';
const SUBMIT =
  'git add -A; git diff --cached > /tmp/p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat /tmp/p';

/** The same work by the tools of whoever asks: its path says who it is. */
function turnsFor(path: string, id: string): Turn[] {
  const named = path.includes('/responses') ? 'responses' : path.includes('/messages') ? 'messages' : 'chat';
  const bash = (command: string): Turn => ({ tool: 'bash', args: { command } });
  if (named === 'chat') return [bash(LOOK), bash(solve(id)), bash(SUBMIT)];
  const { runs } = AGENTS.find(({ dialect }) => dialect === named)!;
  return [runs(LOOK), runs(solve(id)), { say: 'Done.' }];
}

test.skipIf(process.env.SWEBATCH_TEST_CLAUDE_CODE !== '1')(
  'three agents are arms of one run, and are recorded, judged, graded and compared alike',
  async () => {
    for (const one of AGENTS.filter(({ agent }) => agent === 'codex' || agent === 'claude-code'))
      expect(await addedFromNpm(one)).toBe(null);
    await using provider = await startFakeProvider((seen, results) =>
      byInstance(Object.fromEntries(IDS.map((id) => [id, turnsFor(seen.path, id)])))(seen, results),
    );
    const out = tempDir('three-');
    const env = { HOSTED_VLLM_API_KEY: REAL_KEY };
    const dataset = ['--subset', join(REPO, 'datasets', 'demo', 'demo.jsonl'), '-i', IDS.join(',')];
    const model = ['-m', 'hosted_vllm/fake-1', '-c', `model.base_url=${provider.url}/v1`];
    const here = ['-c', 'environment.pull=never', '-c', 'model.prices={"input":1,"output":2}'];
    const how = ['--epochs', '2', '-w', '2', '--evaluate', '-o', out, '--run-id', 'three'];
    const done = await cli(['run', ...dataset, '-c', 'swebench', '-c', 'agents', ...model, ...here, ...how], {
      env,
    });
    expect(done.code, done.stderr).toBe(0);
    const db = new Database(join(out, 'swebatch.db'), { readonly: true });
    const attempts = db
      .prepare(
        'SELECT arms.name, exit_reason, steps, suspicion FROM attempts JOIN trials ON trials.id = trial_id JOIN arms ON arms.id = arm_id ORDER BY arms.id',
      )
      .all() as { name: string; exit_reason: string; steps: number; suspicion: string }[];
    const outcomes = db.prepare('SELECT DISTINCT outcome FROM evaluations').all();
    db.close();
    expect(attempts.map(({ name }) => name)).toEqual(
      ['mini', 'codex', 'claude-code'].flatMap((name) => [name, name, name, name]),
    );
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ exit_reason: 'submitted', steps: 3 });
      expect(attempt.suspicion).toContain('reads_other_commits');
    }
    expect(outcomes).toEqual([{ outcome: 'resolved' }]);
    const compared = await cli(['compare', 'three/mini', 'three/codex', 'three/claude-code', '-o', out]);
    expect(compared.code, compared.stderr).toBe(0);
    expect(compared.stdout).toContain('three/codex → three/claude-code');
    const verified = await cli(['verify', 'three', '-o', out]);
    expect(verified.code, verified.stdout).toBe(0);
  },
);
