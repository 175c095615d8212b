// A run without containers, of instances that are all alike: for what has nothing to do with them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import { tempDir } from '../support/cli.ts';

const block = (command: string): string => `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\``;
/** Two commands and a submission of nothing. */
export const THREE_REPLIES = [
  block('echo first'),
  block('echo second'),
  block('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'),
];

export interface LocalRun {
  /** The results root. */
  readonly out: string;
  /** Of a run r. */
  readonly args: readonly string[];
  query<T>(sql: string): T[];
}

interface Options {
  readonly instances?: number;
  readonly model: Record<string, unknown>;
  readonly run?: Record<string, unknown>;
}

export function localRun({ instances = 1, model, run = {} }: Options): LocalRun {
  const root = tempDir('swebatch-local-');
  const dataset = join(root, 'data.jsonl');
  const row = { repo: 'a/a', base_commit: 'a'.repeat(40), problem_statement: 'x', patch: '', test_patch: '' };
  const ids = Array.from({ length: instances }, (_, n) => `a__a-${n + 1}`);
  const rows = ids.map((instance_id) => ({ instance_id, ...row, FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' }));
  writeFileSync(dataset, rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const tree = join(root, 'tree');
  mkdirSync(tree);
  execFileSync('git', ['init', '-q'], { cwd: tree });
  const config = join(root, 'config.json');
  const environment = { environment_class: 'local', cwd: tree };
  writeFileSync(config, JSON.stringify({ model: { prices: 'free', ...model }, environment, run }));
  const out = join(root, 'out');
  return {
    out,
    args: ['run', '--subset', dataset, '-c', config, '-o', out, '--run-id', 'r', '--progress', 'plain'],
    query<T>(sql: string) {
      using store = openStore(join(out, 'swebatch.db'), { readonly: true });
      return store.prepare(sql).all() as T[];
    },
  };
}
