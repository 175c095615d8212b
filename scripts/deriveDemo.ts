// For maintainers: writes datasets/demo/demo.jsonl from the repositories' streams and the issue texts beside it.
//   node scripts/deriveDemo.ts
// The two test lists are measured, not written by hand: each eval script runs in its image without and with the gold patch.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBase, run } from '../src/demo/baseImage.ts';
import { DEMO_FILE, type DemoRow, ensureInstanceImages } from '../src/demo/demoDataset.ts';
import { draftRows } from './demo/draft.ts';

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Runs a row's eval script in a fresh container, after applying a patch, and reads what each test did. */
function measure(row: DemoRow, patch: string, work: string): Map<string, TestOutcome> {
  writeFileSync(join(work, 'eval.sh'), row.eval_script);
  writeFileSync(join(work, 'patch.diff'), patch);
  const apply = patch ? 'git apply /demo/patch.diff || exit 97; ' : '';
  const mount = `${work}:/demo:ro`;
  const args = ['run', '--rm', '--network', 'none', '-v', mount, row.image];
  const done = run('docker', [...args, 'bash', '-c', `${apply}bash /demo/eval.sh 2>&1`], 300_000);
  if (done.code === 97) throw new Error(`${row.instance_id}: the gold patch does not apply`);
  return outcomesOf(row.log_parser, done.stdout);
}

function withMeasuredTests(row: DemoRow, work: string): DemoRow {
  const before = measure(row, '', work);
  const after = measure(row, row.patch, work);
  const passing = [...after].filter(([, outcome]) => outcome === 'PASSED').map(([name]) => name);
  const failing = [...after].filter(([, outcome]) => outcome !== 'PASSED').map(([name]) => name);
  const fixed = passing.filter((name) => before.get(name) !== 'PASSED');
  const kept = passing.filter((name) => before.get(name) === 'PASSED');
  if (failing.length > 0) throw new Error(`${row.instance_id}: with gold these fail: ${failing.join(', ')}`);
  if (fixed.length === 0 || kept.length === 0)
    throw new Error(
      `${row.instance_id}: ${fixed.length} tests fixed and ${kept.length} kept; both are needed`,
    );
  say(`${row.instance_id}: ${fixed.length} to fix, ${kept.length} to keep`);
  return { ...row, FAIL_TO_PASS: JSON.stringify(fixed), PASS_TO_PASS: JSON.stringify(kept) };
}

// What each test of a demo repository did, read from the output of its runner: the forms that the official parsers
// pytest, django and tap read. Only the maintainer's derive script uses it, on output that it has just made itself.

type TestOutcome = 'PASSED' | 'FAILED';

/** Name and outcome in a line of each runner; names are those of the official parsers. */
const FORMS: Record<string, (line: string) => [string, TestOutcome] | undefined> = {
  parse_log_pytest(line) {
    const found = /^(PASSED|FAILED|ERROR) (\S+)/.exec(line);
    return found ? [found[2]!, found[1] === 'PASSED' ? 'PASSED' : 'FAILED'] : undefined;
  },
  parse_log_django(line) {
    const found = /^(.+) \.\.\. (ok|FAIL|ERROR)$/.exec(line);
    return found ? [found[1]!, found[2] === 'ok' ? 'PASSED' : 'FAILED'] : undefined;
  },
  parse_log_tap(line) {
    const found = /^(ok|not ok) (\d+) (.+)$/.exec(line);
    return found ? [found[3]!, found[1] === 'ok' ? 'PASSED' : 'FAILED'] : undefined;
  },
};

/** Outcomes between the markers of an evaluation's log. A name that occurs twice would make the row ambiguous. */
function outcomesOf(logParser: string, log: string): Map<string, TestOutcome> {
  const form = FORMS[logParser];
  if (!form) throw new Error(`no demo repository uses the parser ${logParser}`);
  const body = log.split('>>>>> Start Test Output')[1]?.split('>>>>> End Test Output')[0];
  if (body === undefined) throw new Error(`the log has no markers:\n${log.slice(-2000)}`);
  const outcomes = new Map<string, TestOutcome>();
  for (const line of body.split('\n')) {
    const entry = form(line.trim());
    if (!entry) continue;
    const [name, outcome] = entry;
    if (outcomes.has(name)) throw new Error(`the test name ${name} occurs twice`);
    outcomes.set(name, outcome);
  }
  if (outcomes.size === 0) throw new Error(`no test was found in the log:\n${body.slice(-2000)}`);
  return outcomes;
}

const work = mkdtempSync(join(tmpdir(), 'swebatch-derive-'));
try {
  const drafts = draftRows(work);
  say(`base image: ${await ensureBase(say, false)}`);
  await ensureInstanceImages(drafts, false);
  const rows = drafts.map((row) => withMeasuredTests(row, work));
  writeFileSync(DEMO_FILE, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  say(`${rows.length} rows written to ${DEMO_FILE}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
