// The demo's predictions, graded by the official harness from PyPI on the same engine: the same verdicts as ours, instance by instance.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BIN, REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { fromPypi } from '../support/python/fromPypi.ts';

const VERSION = '5.0.2';
const LISTS = ['resolved_ids', 'unresolved_ids', 'empty_patch_ids', 'error_ids', 'completed_ids'] as const;
type Report = Readonly<Record<(typeof LISTS)[number], readonly string[]>>;

const listsOf = (path: string) => {
  const report = JSON.parse(readFileSync(path, 'utf8')) as Report;
  return Object.fromEntries(LISTS.map((list) => [list, report[list].toSorted()]));
};

test.skipIf(!(await dockerAvailable()))(
  `swebench ${VERSION} and we say the same of each instance`,
  async (context) => {
    const found = await fromPypi('swebench', VERSION);
    if ('why' in found) return context.skip(found.why);
    const home = tempDir('swebatch-harness-');
    const run = spawnSync(
      process.execPath,
      [BIN, 'run', '-c', 'demo', '-w', '2', '--evaluate', '--run-id', 'ours', '-o', join(home, 'results')],
      { cwd: REPO, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: process.env.HOME } },
    );
    expect(run.status, run.stderr).toBe(0);
    const theirs = join(home, 'theirs');
    mkdirSync(theirs);
    copyFileSync(join(home, 'results', 'ours', 'preds.json'), join(theirs, 'preds.json'));
    const graded = spawnSync(
      'python3',
      [
        ...[
          '-m',
          'swebench.harness.run_evaluation',
          '--dataset_name',
          join(REPO, 'datasets', 'demo', 'demo.jsonl'),
        ],
        ...['--predictions_path', 'preds.json', '--run_id', 'ours', '--max_workers', '2'],
      ],
      {
        cwd: theirs,
        encoding: 'utf8',
        env: { ...process.env, PYTHONPATH: found.folder },
        maxBuffer: 1 << 28,
      },
    );
    expect(graded.status, graded.stderr).toBe(0);
    const name = 'scripted:datasets__demo__replies.ours.json';
    expect(listsOf(join(theirs, name))).toEqual(listsOf(join(home, 'results', 'ours', name)));
    expect(listsOf(join(theirs, name)).resolved_ids).toHaveLength(9);
  },
);
