// The scripts of snapshot and capture on a folder of this machine: what must never be lost in silence.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { isBeside } from '../../../src/environment/patch/besideWork.ts';
import {
  diffSnapshot,
  type GitSnapshot,
  type ScriptRunner,
  takeSnapshot,
} from '../../../src/environment/patch/capture.ts';

const runWith =
  (more: Readonly<Record<string, string>>): ScriptRunner =>
  (script, { env }) =>
    new Promise((resolve, reject) => {
      const child = spawn('bash', ['-p', '-c', script], {
        env: { PATH: process.env.PATH ?? '', ...env, ...more },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const parts: Buffer[] = [];
      child.stdout.on('data', (data: Buffer) => parts.push(data));
      child.stderr.on('data', (data: Buffer) => parts.push(data));
      child.on('error', reject).on('close', (code) => {
        const raw = Buffer.concat(parts);
        resolve({ code: code ?? -1, raw, output: raw.toString(), timedOut: false, omittedBytes: 0 });
      });
    });

const run = runWith({});

const folders: string[] = [];
const folder = () => {
  const made = mkdtempSync(join(tmpdir(), 'swebatch-capture-'));
  folders.push(made);
  return made;
};
afterEach(() => {
  for (const one of folders.splice(0)) rmSync(one, { recursive: true, force: true });
});

let names = 0;
async function snapshotOf(tree: string): Promise<GitSnapshot> {
  names += 1;
  const snapshot = await takeSnapshot(run, tree, `capture-test-${process.pid}-${names}`, 60);
  folders.push(snapshot!.folder);
  return snapshot!;
}
const capture = (snapshot: GitSnapshot, tree: string, maxBytes = 100_000) =>
  diffSnapshot(run, snapshot, tree, { timeoutS: 60, maxBytes }, (path) => readFile(path));
const textOf = (captured: { patch: Uint8Array }) => Buffer.from(captured.patch).toString();
const second = (path: string) => Math.floor(statSync(path).ctimeMs / 1000);

const untilSecond = async (at: number) => {
  while (Date.now() < at * 1000) await new Promise((done) => setTimeout(done, 10));
};

test('a start tree that is too large for its time is told with the key that gives more', async () => {
  const slow: ScriptRunner = async () => ({
    ...{ code: 137, raw: Buffer.alloc(0), output: '', timedOut: true, omittedBytes: 0 },
  });
  await expect(takeSnapshot(slow, '/disk', 'start', 120)).rejects.toThrow(
    'the start tree of /disk could not be recorded within 120 s (environment.capture_timeout)',
  );
});

describe('capture', () => {
  test('a library that cannot be loaded into any program is complained of by each, and never in the patch', async () => {
    const tree = folder();
    writeFileSync(join(tree, 'f'), 'before\n');
    const snapshot = await snapshotOf(tree);
    writeFileSync(join(tree, 'f'), 'after\n');
    const noisy = runWith({ LD_PRELOAD: '/nowhere/x.so' });
    expect((await noisy('true', { timeoutS: 9, env: {} })).output).toContain('/nowhere/x.so');
    const captured = await diffSnapshot(noisy, snapshot, tree, { timeoutS: 60, maxBytes: 1000 }, (path) =>
      readFile(path),
    );
    expect(captured).toMatchObject({ state: 'ok', warnings: [] });
    expect(textOf(captured)).toMatch(/^diff --git a\/f b\/f\n[\s\S]*-before\n\+after\n$/);
  });

  test('a change within the second of the snapshot that leaves the size alone', async (context) => {
    let tried = 0;
    for (; tried < 20; tried += 1) {
      const tree = folder();
      const file = join(tree, 'f');
      writeFileSync(file, 'one\n');
      const began = second(file);
      const snapshot = await snapshotOf(tree);
      writeFileSync(file, 'two\n');
      // Only within one second git cannot tell by the clock: on a slow machine that takes some tries.
      if (second(file) !== began) continue;
      await untilSecond(began + 1);
      const captured = await capture(snapshot, tree);
      expect([captured.state, textOf(captured)]).toEqual(['ok', expect.stringContaining('-one\n+two\n')]);
      return;
    }
    context.skip(`no snapshot was taken within a second in ${tried} tries`);
  });

  test('work that could not be stored is not called empty', async () => {
    const tree = folder();
    writeFileSync(join(tree, 'f'), 'one\n');
    const snapshot = await snapshotOf(tree);
    writeFileSync(join(tree, 'f'), 'another\n');
    // As on a full disk: no object can be written.
    const block = `for i in {0..9} {a..f}; do for j in {0..9} {a..f}; do rm -rf "$P/git/objects/$i$j"; : >"$P/git/objects/$i$j"; done; done`;
    expect((await run(block, { timeoutS: 60, env: { P: snapshot.folder } })).code).toBe(0);
    const captured = await capture(snapshot, tree);
    expect(captured.state).toBe('invalid');
    expect(captured.warnings.join(' ')).toContain('could not all be stored');
  });

  test('what is far too large is not read, compressed and compared first', async () => {
    const tree = folder();
    writeFileSync(join(tree, 'f'), 'one\n');
    const snapshot = await snapshotOf(tree);
    writeFileSync(join(tree, 'zeros of a core dump'), Buffer.alloc(6_000_000));
    writeFileSync(join(tree, 'f'), 'two\n');
    const captured = await capture(snapshot, tree);
    expect([captured.state, captured.patch.length]).toEqual(['oversized', 0]);
    expect(captured.warnings.join(' ')).toMatch(
      /the changed files have 6000004 bytes.*: zeros\\ of\\ a\\ core\\ dump \(6000000 bytes\)/,
    );
    rmSync(join(tree, 'zeros of a core dump'));
    expect(textOf(await capture(snapshot, tree))).toContain('+two');
  });

  test('what is new at a path beside the work is not in the patch, and what was there before is', async () => {
    const tree = folder();
    for (const name of ['.tool', 'notes', '.tool [x]']) mkdirSync(join(tree, name));
    writeFileSync(join(tree, 'notes/kept.md'), 'one\n');
    const snapshot = await snapshotOf(tree);
    const added = [
      '.tool/tasks.json',
      '.tool2',
      '.aider.log',
      '.aider.tags/a/b',
      'notes/kept.md',
      'notes/new.md',
    ];
    added.push('src/.aider.log', '.tool [x]/?', 'a.tmp.log', 'work.py');
    for (const name of added) {
      mkdirSync(join(tree, name, '..'), { recursive: true });
      writeFileSync(join(tree, name), `${name}\n`);
    }
    const beside = ['.tool/', '.aider*', 'notes', '.tool [x]/?', '*.tmp.*'];
    const found = async (paths: readonly string[]) => {
      const limits = { timeoutS: 60, maxBytes: 100_000, beside: paths };
      const captured = await diffSnapshot(run, snapshot, tree, limits, (path) => readFile(path));
      expect(captured).toMatchObject({ state: 'ok', warnings: [] });
      return [...textOf(captured).matchAll(/^\+\+\+ b\/(.*?)\t?$/gm)].map(([, path]) => path!);
    };
    const work = ['.tool2', 'notes/kept.md', 'src/.aider.log', 'work.py'];
    expect(await found(beside)).toEqual(work);
    // Images without git are compared by the same rule; what was there before is compared whatever it is called.
    const fresh = added.filter((path) => path !== 'notes/kept.md');
    expect(fresh.filter((path) => !isBeside(beside, path))).toEqual(
      work.filter((path) => fresh.includes(path)),
    );
    expect((await found([])).toSorted()).toEqual(added.toSorted());
  });

  test('an ignored name that ends with a space hides no other name', async () => {
    const tree = folder();
    writeFileSync(join(tree, '.gitignore'), 'out*\n');
    writeFileSync(join(tree, 'out '), 'ignored\n');
    const snapshot = await snapshotOf(tree);
    writeFileSync(join(tree, '.gitignore'), '');
    writeFileSync(join(tree, 'out'), 'work\n');
    writeFileSync(join(tree, 'out '), 'still ignored\n');
    const text = textOf(await capture(snapshot, tree));
    expect(text).toContain('+++ b/out\n');
    expect(text).not.toContain('still ignored');
  });
});
