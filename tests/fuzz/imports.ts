// Folders of other tools, broken: what imports and compares them answers with their own errors, and reads no file outside.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { readParquet } from '../../src/dataset/read/readRows.ts';
import { runFromInstanceReports, runFromReport } from '../../src/formats/harness/reports.ts';
import { readInspectLogs } from '../../src/formats/inspect/inspect.ts';
import { readMiniRun } from '../../src/formats/miniSweAgent/miniSweAgent.ts';
import { SourceError } from '../../src/formats/sourceError.ts';
import { verdictsIn } from '../../src/formats/verdicts.ts';
import { readSide } from '../../src/report/compare/side.ts';
import { readSource } from '../../src/results/import/importResults.ts';
import { UserError } from '../../src/run/userError.ts';
import { CORPORA, textLike } from './corpus.ts';
import { type Target, target } from './target.ts';

const WORDS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  'NaN',
  'null',
  '"a__a-1"',
  '"instance_id"',
  '"model_patch"',
  '"resolved_ids"',
  '"resolved"',
  '"info"',
  '"messages"',
  '"../x"',
  '\n',
  '{"a__a-1":{"resolved":true}}',
  '1e400',
  '"\\ud800"',
];
const content = textLike(CORPORA.files!(), WORDS);
const name = fc.constantFrom(
  'preds.json',
  'all_preds.jsonl',
  'report.json',
  'results.json',
  'resolved_by_repo.json',
  'a__a-1/a__a-1.traj.json',
  'a__a-1/report.json',
  'a__a-1/patch.diff',
  'a__a-1/test_output.txt',
  'm.r.json',
  'a__a-1.traj',
  'logs/a__a-1/report.json',
  'result.json',
  'a/result.json',
  'a/agent/trajectory.json',
  'config.json',
  'x.eval',
  '2026-01-01T00-00-00_a.json',
  'a__a-1.atif.json',
  'results/results.json',
  'a__a-1/a__a-1.traj',
  'output.jsonl',
  'output.swebench_eval.jsonl',
  'run_metadata.json',
  'a/a.1-of-1/results.json',
);
const tree = fc.array(fc.tuple(name, content, fc.boolean()), { maxLength: 5 });

async function inFolder(
  files: readonly (readonly [string, string, boolean])[],
  read: (folder: string) => unknown,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'swebatch-fuzz-'));
  try {
    for (const [path, text, bytes] of files) {
      const whole = join(folder, path);
      mkdirSync(join(whole, '..'), { recursive: true });
      writeFileSync(whole, bytes ? Buffer.from(text, 'latin1') : text);
    }
    symlinkSync('/etc', join(folder, 'link'));
    await read(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const refused = (work: () => unknown, ...kinds: (abstract new (...args: never[]) => Error)[]): void => {
  try {
    work();
  } catch (error) {
    if (!kinds.some((kind) => error instanceof kind)) throw error;
  }
};

const rows = [1, 2, 3].map((n) => ({ instance_id: `a__a-${n}`, repo: 'a/a', patch: 'x'.repeat(50 * n) }));
const good = new Uint8Array(
  parquetWriteBuffer({
    columnData: (['instance_id', 'repo', 'patch'] as const).map((column) => ({
      name: column,
      data: rows.map((row) => row[column]),
      type: 'STRING',
    })),
  }),
);

const evalLog = readFileSync(join(import.meta.dirname, '..', 'formats', 'inspectLogs', 'made.eval'));

const sourceTargets = (): Target[] => [
  target(
    'whatever another runner left',
    fc.asyncProperty(tree, (files) =>
      inFolder(files, async (folder) => {
        for (const path of ['', ...files.map(([name]) => name)])
          await readSource(join(folder, path)).catch((error: unknown) => {
            if (!(error instanceof UserError)) throw error;
          });
      }),
    ),
  ),
  target(
    'a log of Inspect with wrong bytes',
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat({ max: evalLog.length - 1 }), fc.nat({ max: 255 })), { maxLength: 5 }),
      fc.nat({ max: evalLog.length }),
      fc.boolean(),
      (changes, end, cut) => {
        const bytes = Uint8Array.from(evalLog);
        for (const [at, byte] of changes) bytes[at] = byte;
        return inFolder([], (folder) => {
          writeFileSync(join(folder, 'x.eval'), cut ? bytes.subarray(0, end) : bytes);
          return readInspectLogs(join(folder, 'x.eval'));
        });
      },
    ),
  ),
];

export const importTargets = (): Target[] => [
  ...sourceTargets(),
  target(
    'a folder of mini-swe-agent',
    fc.asyncProperty(tree, (files) => inFolder(files, (folder) => void readMiniRun(folder))),
  ),
  target(
    'a folder of reports',
    fc.asyncProperty(tree, (files) =>
      inFolder(files, (folder) => {
        runFromInstanceReports(folder);
        const report = join(folder, 'm.r.json');
        writeFileSync(report, files[0]?.[1] ?? '');
        try {
          runFromReport(report, verdictsIn(report).verdicts);
        } catch (error) {
          if (!(error instanceof SourceError)) throw error;
        }
      }),
    ),
  ),
  target(
    'sides of a comparison',
    fc.asyncProperty(tree, (files) =>
      inFolder(files, (folder) => {
        refused(() => readSide(folder), SourceError);
        for (const [path] of files) refused(() => readSide(join(folder, path)), SourceError);
      }),
    ),
  ),
  target(
    'a Parquet file with wrong bytes',
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 })), { maxLength: 5 }),
      fc.nat({ max: good.length }),
      fc.boolean(),
      async (changes, end, cut) => {
        const bytes = Uint8Array.from(good);
        for (const [at, byte] of changes) bytes[at] = byte;
        // A broken file may keep the reader busy for ever: what counts is that it is given up.
        await readParquet(cut ? bytes.subarray(0, end) : bytes, 500);
      },
    ),
  ),
];
