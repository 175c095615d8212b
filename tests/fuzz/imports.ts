// Folders of other tools, broken: what imports and compares them answers with their own errors, and reads no file outside.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { readParquet } from '../../src/dataset/read/readParquet.ts';
import { readSide, SideError } from '../../src/report/compare/readSide.ts';
import { readMiniRun } from '../../src/service/import/readMiniRun.ts';
import {
  runFromInstanceReports,
  runFromReport,
  verdictsOfLeaderboard,
  verdictsOfRunReport,
} from '../../src/service/import/readReports.ts';
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
);
const tree = fc.array(fc.tuple(name, content, fc.boolean()), { maxLength: 5 });

function inFolder(
  files: readonly (readonly [string, string, boolean])[],
  read: (folder: string) => void,
): void {
  const folder = mkdtempSync(join(tmpdir(), 'swebatch-fuzz-'));
  try {
    for (const [path, text, bytes] of files) {
      const whole = join(folder, path);
      mkdirSync(join(whole, '..'), { recursive: true });
      writeFileSync(whole, bytes ? Buffer.from(text, 'latin1') : text);
    }
    symlinkSync('/etc', join(folder, 'link'));
    read(folder);
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

export const importTargets = (): Target[] => [
  target(
    'a folder of mini-swe-agent',
    fc.property(tree, (files) => inFolder(files, (folder) => void readMiniRun(folder))),
  ),
  target(
    'a folder of reports',
    fc.property(tree, (files) =>
      inFolder(files, (folder) => {
        runFromInstanceReports(folder);
        const report = join(folder, 'm.r.json');
        writeFileSync(report, files[0]?.[1] ?? '');
        const read = verdictsOfRunReport(report);
        if (read.ok) runFromReport(report, read.verdicts);
        verdictsOfLeaderboard(report, readMiniRun(folder));
      }),
    ),
  ),
  target(
    'sides of a comparison',
    fc.property(tree, (files) =>
      inFolder(files, (folder) => {
        refused(() => readSide(folder), SideError);
        for (const [path] of files) refused(() => readSide(join(folder, path)), SideError);
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
