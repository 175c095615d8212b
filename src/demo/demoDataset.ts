/** The place of the bundled dataset and the form of its rows; shared with the scripts that make it. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../base/files/packageFile.ts';
import { BASE_IMAGE, build, ensureBase, imageContent, run, type Say } from './baseImage.ts';

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

export function readDemoRows(): DemoRow[] {
  const lines = readFileSync(DEMO_FILE, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as DemoRow);
}

/** "swebatch/tabular" to "tabular": the name of the stream in repos/. */
export function streamName(row: Pick<DemoRow, 'repo'>): string {
  return row.repo.split('/').at(-1)!;
}

export function streamFile(name: string): string {
  return join(DEMO_DIR, 'repos', `${name}.fi`);
}

type Wanted = Pick<DemoRow, 'instance_id' | 'repo' | 'base_commit' | 'image'>;

const DOCKERFILE = `FROM ${BASE_IMAGE}\nADD testbed.tar /\nWORKDIR /testbed\n`;

/**
 * The stream holds the whole history with the fixes, so it is unpacked in a container that is thrown away. A push
 * carries only what is reachable from the base commit; the logs go too, because reflogs are where a later commit
 * would be looked for. Nothing here commits, so no git identity is needed and none is left behind.
 */
function unpackScript(row: Wanted): string {
  return [
    'set -euo pipefail',
    'git init -q -b none /history',
    'git -C /history fast-import --quiet',
    'git init -q -b main /testbed',
    `git -C /history push -q /testbed ${row.base_commit}:refs/heads/base`,
    'cd /testbed',
    'git checkout -q -b main base',
    'git branch -q -D base',
    'git repack -adq',
    'rm -rf .git/logs .git/FETCH_HEAD .git/ORIG_HEAD .git/hooks',
    `test "$(git rev-parse HEAD)" = ${row.base_commit}`,
    'tar -C / --numeric-owner -cf - testbed',
  ].join('\n');
}

function contentOf(row: Wanted, baseId: string): string {
  const hash = createHash('sha256').update(baseId).update(DOCKERFILE).update(unpackScript(row));
  return hash.update(readFileSync(streamFile(streamName(row)))).digest('hex');
}

function unpack(row: Wanted, tarFile: string): void {
  const stream = openSync(streamFile(streamName(row)), 'r');
  const tar = openSync(tarFile, 'w');
  try {
    const args = ['run', '--rm', '-i', '--network', 'none', BASE_IMAGE, 'bash', '-c', unpackScript(row)];
    const done = spawnSync('docker', args, { stdio: [stream, tar, 'pipe'], encoding: 'utf8' });
    if (done.status !== 0)
      throw new Error(`${row.instance_id}: unpacking its repository failed: ${done.stderr}`);
  } finally {
    closeSync(stream);
    closeSync(tar);
  }
}

/** Builds what is missing or made from something else; gives the names of the images it built. */
export async function ensureInstanceImages(rows: readonly Wanted[], rebuild: boolean): Promise<string[]> {
  const baseId = run('docker', ['image', 'inspect', '--format', '{{.Id}}', BASE_IMAGE]).stdout.trim();
  const built: string[] = [];
  for (const row of rows) {
    const content = contentOf(row, baseId);
    if (!rebuild && imageContent(row.image) === content) continue;
    const context = mkdtempSync(join(tmpdir(), 'swebatch-instance-'));
    try {
      unpack(row, join(context, 'testbed.tar'));
      await build(row.image, context, DOCKERFILE, content);
      built.push(row.image);
    } finally {
      rmSync(context, { recursive: true, force: true });
    }
  }
  return built;
}

/** `built`: names of the images that were built now. Throws an Error that says what this machine lacks. */
export async function buildDemoImages(say: Say, rebuild = false) {
  const base = await ensureBase(say, rebuild);
  const rows = readDemoRows();
  return { base, built: await ensureInstanceImages(rows, rebuild), images: rows.length };
}
