// A secret that is an ordinary word: the person is warned when a run starts, and no verdict depends on it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';

const WORD = { SWEBATCH_SECRETS: 'DB_PASSWORD', DB_PASSWORD: 'sunday' };

describe('saved logs that are graded again', () => {
  const LOG = '>>>>> Start Test Output\nok 1 opens on sunday\n>>>>> End Test Output\nsunday\n';
  function saved(): { dir: string; dataset: string; at: (name: string) => string } {
    const dir = tempDir();
    const folder = join(dir, 'logs/run_evaluation/r/m/a__b-1');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'test_output.txt'), LOG);
    writeFileSync(join(folder, 'patch.diff'), 'diff --git a/sunday b/sunday\n');
    const dataset = join(dir, 'rows.jsonl');
    const row = {
      ...{ instance_id: 'a__b-1', repo: 'a/b', base_commit: 'abc', problem_statement: 'p', eval_script: 'x' },
      ...{ log_parser: 'tap', FAIL_TO_PASS: ['opens on sunday'], PASS_TO_PASS: [] },
    };
    writeFileSync(dataset, JSON.stringify(row));
    return { dir: join(dir, 'logs'), dataset, at: (name) => join(folder, name) };
  }
  const again = async (env: Record<string, string>) => {
    const { dir, dataset, at } = saved();
    const ended = await cli(['evaluate', '--regrade', dir, '--subset', dataset, '--write', '--json'], {
      env,
    });
    expect(ended.code).toBe(0);
    const [row] = JSON.parse(ended.stdout) as { suspicion: { rule: string }[] }[];
    const files = ['test_output.txt', 'patch.diff', 'report.json'].map((name) =>
      readFileSync(at(name), 'utf8'),
    );
    return { row: row!, files };
  };

  test('get the same verdict and the same bytes; the log is flagged', async () => {
    const [without, withWord] = [await again({}), await again(WORD)];
    expect(without.row).toMatchObject({ resolved: true, suspicion: [] });
    expect(withWord.row).toEqual({
      ...without.row,
      suspicion: [expect.objectContaining({ rule: 'log_holds_secret', strict: false })],
    });
    expect(withWord.files).toEqual(without.files);
    expect(withWord.files[0]).toBe(LOG);
    expect(withWord.files[2]).toContain('opens on sunday');
  });
});

describe('the start of a run', () => {
  const start = (env: Record<string, string>) =>
    cli(
      [
        ...[
          'run',
          '-o',
          tempDir(),
          '--subset',
          'datasets/demo/demo.jsonl',
          '--limit',
          '1',
          '--progress',
          'plain',
        ],
        ...['-m', 'scripted:datasets/demo/replies', '-c', 'environment.environment_class=local'],
        ...[
          '-c',
          `environment.cwd=${tempDir()}`,
          '-c',
          'environment.env.MY_API_KEY=abc',
          '-c',
          'environment.env.PAGER=cat',
        ],
      ],
      { env },
    );
  test('warns of it, by the name of the variable alone', async () => {
    const { stderr } = await start(WORD);
    expect(stderr).toMatch(
      /warning: the value of \$DB_PASSWORD is an ordinary word: it is replaced wherever/,
    );
    expect(stderr).not.toContain('sunday');
    expect(stderr).toContain('warning: environment.env.MY_API_KEY goes into every container');
    expect(stderr).not.toContain('environment.env.PAGER');
  });
  test('says nothing of one that no word is like', async () => {
    expect((await start({ ...WORD, DB_PASSWORD: 'q8#Lr2!vXz0pTn5@Yc7w' })).stderr).not.toContain(
      'ordinary word',
    );
    expect((await start({ DB_PASSWORD: 'sunday' })).stderr).not.toContain('ordinary word');
  });
});
