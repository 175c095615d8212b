// The agents that measure the runner: the oracle applies what it is given and ends as that ended, nop does nothing.
import { expect, test } from 'vitest';
import { agentNamed, nameWithoutModel } from '../../src/agent/agents.ts';
import type { AgentParts, SolutionEnd } from '../../src/agent/contract.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';

async function runOf(name: string, end?: SolutionEnd) {
  const kind = (await agentNamed(name))!;
  const notes: string[] = [];
  const asked: unknown[] = [];
  const parts = {
    instanceId: 'a',
    environment: {},
    config: { wall_time_limit_seconds: 7 },
    callbacks: { onNote: (text: string) => void notes.push(text) },
    solution: end && {
      apply: async (_: unknown, { timeoutS }: { timeoutS: number }) => {
        asked.push(timeoutS);
        return end;
      },
    },
  } as unknown as AgentParts;
  return { result: await kind.create(parts).run('the task'), notes, asked };
}

test('the oracle gives the solution the time of the task, and notes how it ended', async () => {
  const { result, notes, asked } = await runOf('oracle', { says: 'it is applied', timedOut: false });
  expect(asked).toEqual([7]);
  expect(notes).toEqual(['it is applied']);
  expect(result).toMatchObject({ exitStatus: 'Submitted', submission: '', steps: 0, costNano: 0 });
  expect(result.submissionBytes).toBeUndefined();
});

test('out of time is a limit, and a patch that does not apply is what is graded', async () => {
  const late = await runOf('oracle', { says: '', timedOut: true });
  expect(late.result).toMatchObject({ exitStatus: 'TimeExceeded', limit: 'wall_time' });
  const { result } = await runOf('oracle', { says: '', timedOut: false, submission: 'diff' });
  expect(Buffer.from(result.submissionBytes!).toString()).toBe('diff');
});

test('without a solution the oracle does not begin; nop needs none', async () => {
  await expect(runOf('oracle')).rejects.toThrow('a brings no solution');
  expect((await runOf('nop')).result.exitStatus).toBe('Submitted');
});

test('their arms name no model, are called as they are, and predict as gold and nop', () => {
  const arms = (...config: string[]) =>
    resolveConfig({ config }, { cwd: '/', env: {} }).arms.map(({ name, predictsAs, model }) => [
      name,
      predictsAs,
      model.model_name,
    ]);
  expect(arms('agent.agent_class=oracle')).toEqual([['oracle', 'gold', 'none:gold']]);
  expect(arms('agent.agent_class=nop')).toEqual([['nop', 'nop', 'none:nop']]);
  expect(arms()).toEqual([['default', undefined, undefined]]);
  expect(nameWithoutModel('./oracle')).toBeUndefined();
});
