// Harbor tasks that others wrote, run for real: who applies the solution passes, who does nothing fails, and nobody finds the tests.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { sqlarUncompress } from '../../../src/store/longText.ts';
import { AGENTS, addedFromNpm, REAL_KEY } from '../../support/agents/agentBench.ts';
import { startFakeProvider, type Turn } from '../../support/agents/playedProvider.ts';
import { cli, tempDir } from '../../support/cli.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { GIVEN_TASKS, type GivenTask, givenTasks } from '../../support/kinds/givenTasks.ts';

const available = await dockerAvailable();
const dir = tempDir('given-');
const given = available ? await givenTasks(dir) : 'Docker is not here';

function query<T>(out: string, sql: string): T[] {
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  db.function('sqlar_uncompress', sqlarUncompress);
  try {
    return db.prepare(sql).all() as T[];
  } finally {
    db.close();
  }
}
const verdicts = (out: string) =>
  query<{ instance_id: string; outcome: string; reward: number | null; error_message: string | null }>(
    out,
    'SELECT instance_id, outcome, reward, error_message FROM evaluations ORDER BY instance_id',
  ).map(({ instance_id, outcome, reward, error_message }) => [instance_id, outcome, reward, error_message]);
const all = (outcome: string, reward: number) =>
  GIVEN_TASKS.toSorted().map((id) => [id, outcome, reward, null]);

/** What the searches printed, in commands and in conversations of programs. */
const searched = (out: string): string[] =>
  query<{ text: string }>(
    out,
    `SELECT content || coalesce(data, '') AS text FROM message_texts WHERE role <> 'assistant'`,
  ).flatMap(({ text }) => /searched \d+ files[^\n"\\<]*/.exec(text)?.[0] ?? []);

const reply = (command: string) => ({ content: `\`\`\`bash\n${command}\n\`\`\``, finish_reason: 'stop' });
const SUBMIT = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

async function scripted(
  name: string,
  tasks: readonly GivenTask[],
  folder: string,
  of: (task: GivenTask) => string[],
) {
  const out = join(dir, name);
  mkdirSync(join(out, 'model'), { recursive: true });
  for (const task of tasks)
    writeFileSync(
      join(out, 'model', `${task.id}.json`),
      JSON.stringify({ replies: [...of(task), SUBMIT].map(reply) }),
    );
  const done = await cli([
    ...['run', '--subset', folder, '--model', `scripted:${join(out, 'model')}`, '-o', out, '--run-id', name],
    ...['-w', '1', '--evaluate', '-c', 'agent.step_limit=8'],
  ]);
  expect(done.code, done.stderr).toBe(0);
  return out;
}

describe.skipIf(typeof given === 'string')(
  `six tasks of deep-swe${typeof given === 'string' ? ` (skipped: ${given})` : ''}`,
  () => {
    const { folder, tasks } = given as Exclude<typeof given, string>;

    test('the built-in agent passes all with the solutions, and finds no test at the start nor at the end', async () => {
      const out = await scripted('solves', tasks, folder, ({ search, solve }) => [search, solve, search]);
      expect(verdicts(out)).toEqual(all('resolved', 1));
      expect(searched(out)).toEqual(Array(2 * tasks.length).fill('searched 0 files'));
    }, 1_800_000);

    test('an agent that does nothing fails all', async () => {
      const out = await scripted('nothing', tasks, folder, () => []);
      expect(verdicts(out)).toEqual(all('unresolved', 0));
    }, 1_800_000);

    test('Codex passes all against a provider that plays the solutions, and finds no test', async (context) => {
      const codex = AGENTS.find(({ agent }) => agent === 'codex')!;
      const missing = await addedFromNpm(codex);
      if (missing) return context.skip(missing);
      // It goes on without the output of a command that takes longer than it is told to wait.
      const runs = (command: string): Turn => {
        const turn = codex.runs(command);
        return 'tool' in turn ? { ...turn, args: { ...turn.args, yield_time_ms: 30_000 } } : turn;
      };
      const turns = tasks.map(({ begins, search, solve }) => ({
        title: JSON.stringify(begins).slice(1, -1),
        played: [runs(search), runs(solve), runs(search), { say: 'It is done.' }],
      }));
      await using provider = await startFakeProvider((seen, results) => {
        const text = JSON.stringify(seen.body);
        return turns.find(({ title }) => text.includes(title))?.played[results];
      });
      const out = join(dir, 'codex');
      mkdirSync(out);
      const config = join(out, 'codex.yaml');
      writeFileSync(
        config,
        JSON.stringify({
          agent: { agent_class: 'codex', cost_limit: 0, wall_time_limit_seconds: 600 },
          model: {
            ...{
              model_name: 'fake-1',
              base_url: `${provider.url}/v1`,
              dialect: 'responses',
              api_key_env: 'FAKE_KEY',
            },
            prices: { input: 1, output: 2 },
          },
        }),
      );
      const done = await cli(
        ['run', '--subset', folder, '-c', config, '-o', out, '--run-id', 'codex', '-w', '1', '--evaluate'],
        { env: { FAKE_KEY: REAL_KEY } },
      );
      expect(done.code, done.stderr).toBe(0);
      expect(verdicts(out)).toEqual(all('resolved', 1));
      const seen = searched(out);
      expect(seen.length).toBeGreaterThanOrEqual(2 * tasks.length);
      expect(new Set(seen)).toEqual(new Set(['searched 0 files']));
    }, 1_800_000);
  },
);
