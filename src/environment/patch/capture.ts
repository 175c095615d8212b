/** The work left in an environment as a patch against the start tree; the scripts beside this file do the work, decisions are made here. */

import { errorFirst } from '../../base/text/errorFirst.ts';
import { type CapturedPatch, EnvironmentError } from '../environment.ts';
import { shellScript } from '../shellScript.ts';
import { excludeLines } from './besideWork.ts';

export type ScriptRunner = (
  script: string,
  options: { timeoutS: number; maxBytes?: number; env: Record<string, string> },
) => Promise<{ code: number; raw: Uint8Array; output: string; timedOut: boolean; omittedBytes: number }>;

export interface GitSnapshot {
  readonly kind: 'git';
  readonly tree: string;
  readonly folder: string;
}

const TAKE_SNAPSHOT = shellScript('takeSnapshot.sh', import.meta.url);
const CAPTURE_PATCH = shellScript('capturePatch.sh', import.meta.url);
const NO_GIT = 90;
const NO_BASH = 127;
const LISTED_FILES = 10;

/** undefined: there is no git (or no bash) to take it with. */
export async function takeSnapshot(
  run: ScriptRunner,
  workTree: string,
  folderName: string,
  timeoutS: number,
): Promise<GitSnapshot | undefined> {
  const done = await run(TAKE_SNAPSHOT, { timeoutS, env: { W: workTree, P: '', N: folderName } });
  if (done.code === NO_GIT || done.code === NO_BASH) return undefined;
  const tree = /^tree ([0-9a-f]{40,64})$/m.exec(done.output)?.[1];
  const folder = /^folder (.+)$/m.exec(done.output)?.[1];
  if (!tree || !folder) {
    const said = errorFirst(done.output, 400) || 'no output';
    throw new EnvironmentError(
      'setup_failed',
      done.timedOut
        ? `the start tree of ${workTree} could not be recorded within ${timeoutS} s (environment.capture_timeout): is environment.cwd the folder of the task?`
        : `the start tree of ${workTree} could not be recorded (rc ${done.code}): ${said}`,
      { evidence: { code: done.code, output: done.output.slice(-2000) } },
    );
  }
  return { kind: 'git', tree, folder };
}

const empty = (state: CapturedPatch['state'], warnings: readonly string[]): CapturedPatch => ({
  patch: new Uint8Array(0),
  state,
  warnings,
});

export async function diffSnapshot(
  run: ScriptRunner,
  snapshot: GitSnapshot,
  workTree: string,
  limits: { timeoutS: number; maxBytes: number; beside?: readonly string[] },
  /** Reads a file without a program inside: text that a library adds to the output of every program is no part of a patch. */
  fileAt: (path: string) => Promise<Uint8Array>,
): Promise<CapturedPatch> {
  const beside = excludeLines(limits.beside ?? []);
  const env = {
    ...{ W: workTree, P: snapshot.folder, START: snapshot.tree, MAX: String(limits.maxBytes) },
    BESIDE: beside,
  };
  const done = await run(CAPTURE_PATCH, { timeoutS: limits.timeoutS, env });
  const lines = done.output.split('\n');
  const after = (word: string) =>
    lines.filter((l) => l.startsWith(`${word} `)).map((l) => l.slice(word.length + 1));
  const warnings = after('warn');
  if (done.timedOut)
    return empty('invalid', [
      ...warnings,
      `the capture took longer than ${limits.timeoutS} s (environment.capture_timeout)`,
    ]);
  if (lines.includes('same')) return empty('empty', warnings);
  const largest = () =>
    after('big')
      .map((line) => ({ bytes: Number(line.split(' ')[0]), path: line.slice(line.indexOf(' ') + 1) }))
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, LISTED_FILES)
      .map((f) => `${f.path} (${f.bytes} bytes)`)
      .join(', ');
  const [changed] = after('files');
  if (changed !== undefined)
    return empty('oversized', [
      ...warnings,
      `the changed files have ${changed} bytes, more than 50 times environment.max_patch_bytes (${limits.maxBytes}); largest files: ${largest()}`,
    ]);
  const size = Number(after('size')[0] ?? Number.NaN);
  if (lines.includes('lost') || Number.isNaN(size))
    return empty('invalid', [
      ...warnings,
      `the capture failed (rc ${done.code}): ${done.output.slice(-300).trim()}`,
    ]);
  if (size > limits.maxBytes)
    return empty('oversized', [
      ...warnings,
      `the patch has ${size} bytes, more than environment.max_patch_bytes (${limits.maxBytes}); largest files: ${largest()}`,
    ]);
  const read = await run('exec cat "$P/patch"', {
    timeoutS: limits.timeoutS,
    maxBytes: limits.maxBytes + 4096,
    env,
  });
  const patch =
    read.raw.length === size ? read.raw : await fileAt(`${snapshot.folder}/patch`).catch(() => read.raw);
  if (patch.length !== size)
    return empty('invalid', [...warnings, `the patch has ${size} bytes but ${patch.length} could be read`]);
  const check = after('check')[0] ?? 'missing';
  return check === 'ok'
    ? { patch, state: 'ok', warnings }
    : { patch, state: 'invalid', warnings: [...warnings, `git apply on the start tree: ${check}`] };
}
