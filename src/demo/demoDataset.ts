/** Where the bundled dataset lies and how its rows look; shared with the scripts that make it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../base/files/packageFile.ts';

export const DEMO_DIR = join(PACKAGE_ROOT, 'datasets', 'demo');
export const DEMO_FILE = join(DEMO_DIR, 'demo.jsonl');

/** A row exactly as it stands in demo.jsonl; both lists are JSON strings, as in the published datasets. */
export interface DemoRow {
  repo: string;
  instance_id: string;
  base_commit: string;
  patch: string;
  test_patch: string;
  problem_statement: string;
  hints_text: string;
  created_at: string;
  version: string;
  FAIL_TO_PASS: string;
  PASS_TO_PASS: string;
  environment_setup_commit: string;
  image: string;
  eval_script: string;
  log_parser: string;
  eval_type: 'pass_and_fail';
  difficulty: string;
}

export function readDemoRows(file = DEMO_FILE): DemoRow[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as DemoRow);
}

/** "swebatch/tabular" to "tabular": the name of the stream in repos/. */
export function streamName(row: Pick<DemoRow, 'repo'>): string {
  return row.repo.split('/').at(-1)!;
}

export function streamFile(name: string): string {
  return join(DEMO_DIR, 'repos', `${name}.fi`);
}
