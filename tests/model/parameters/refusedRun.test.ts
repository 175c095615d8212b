// The program itself: a parameter that the model does not take is refused before anything starts, with exit 2 and what to do.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';

const ROW = {
  instance_id: 'a__a-1',
  repo: 'a/a',
  base_commit: 'a'.repeat(40),
  image: 'swebatch-test/none:1',
  problem_statement: 'x',
  patch: '',
  test_patch: '',
  FAIL_TO_PASS: '[]',
  PASS_TO_PASS: '[]',
};

function run(...more: string[]) {
  const root = tempDir('swebatch-parameters-');
  writeFileSync(join(root, 'data.jsonl'), `${JSON.stringify(ROW)}\n`);
  const args = ['run', '--subset', join(root, 'data.jsonl'), '-o', join(root, 'out'), '-c', 'swebench.yaml'];
  const env = { OPENAI_API_KEY: 'sk-test-0123456789', ANTHROPIC_API_KEY: 'sk-ant-0123456789' };
  return cli([...args, ...more], { env });
}

test('a temperature for GPT-5: exit 2, the parameter and the fix', async () => {
  const { code, stderr } = await run('-m', 'gpt-5', '-c', 'model.model_kwargs.temperature=0');
  expect(code).toBe(2);
  expect(stderr).toContain(
    'model.model_kwargs.temperature: gpt-5 takes no temperature but 1 while it thinks',
  );
  expect(stderr).toContain('temperature: leave it out');
});

test('several arms, each with its own problem', async () => {
  const arms = JSON.stringify([
    { name: 'one', model: { model_name: 'claude-opus-4-5', model_kwargs: { max_tokens: 100_000 } } },
    { name: 'two', model: { model_name: 'gpt-4o', model_kwargs: { reasoning_effort: 'low' } } },
  ]);
  const { code, stderr } = await run('-c', `arms=${arms}`);
  expect(code).toBe(2);
  expect(stderr).toContain('claude-opus-4-5 writes at most 64000 tokens, not 100000');
  expect(stderr).toContain('gpt-4o does not think');
});

test('drop_params leaves it out, and a dry run warns of it', async () => {
  const kwargs = 'model.model_kwargs={"drop_params":true,"temperature":0}';
  const { code, stderr } = await run('-m', 'gpt-5', '-c', kwargs, '--dry-run');
  expect(stderr).toContain('model.model_kwargs.temperature');
  expect(stderr).toContain('it is left out (drop_params)');
  expect(code).toBe(0);
});
