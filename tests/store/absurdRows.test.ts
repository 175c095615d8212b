// One row of the record holds what no version of ours wrote: NULL, huge, negative, fractions as text, torn JSON, bytes. Verbs that read answer.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { openStore } from '../../src/store/open.ts';
import { writeBundle } from '../../src/viewer/bundle.ts';
import { recordRun } from '../report/recordedRun.ts';
import { tempDir } from '../support/cli.ts';

const ABSURD: Readonly<Record<string, unknown>> = {
  NULL: null,
  'a huge number': 1_000_000_000_000_000n,
  'the largest number': 9_223_372_036_854_775_807n,
  'a negative number': -1n,
  NaN: 'NaN',
  'torn JSON': '{"a": [1, ',
  'JSON of another form': '"text"',
  'a list of odd things': '[null, 7, {"rule": null}, [], "x"]',
  'nothing at all': '',
  'control characters': '\u001b[2J\u0000\u202e',
  bytes: Buffer.from([0xff, 0xfe, 0]),
};

/** Keys, and what tells rows apart: a record without them has no such row. */
const KEYS = /(?:^|_)id$|^(?:trial|attempt|run|arm|instance)_?(?:id|pk)$|^final_attempt_id$/;

function recorded(): string {
  const out = tempDir();
  const db = openStore(join(out, 'swebatch.db'));
  recordRun(db, {
    ids: ['a__a-1', 'a__a-2', 'a__a-3'],
    happened: () => [
      {
        outcome: 'resolved',
        resolved: true,
        patch: 'p',
        usage: { prompt_tokens: 1 },
        messages: [
          { role: 'user', content: 'c' },
          { role: 'assistant', content: 'd' },
        ],
        commands: [{ messageSeq: 0, command: 'ls', output: 'a' }],
      },
    ],
  });
  db.exec(
    `INSERT INTO phases (attempt_id, seq, name, offset_ms, duration_ms) SELECT id, 0, 'model', 0, 1 FROM attempts`,
  );
  db.close();
  return out;
}

/** Each row of one table loses its value; what the schema does not take cannot be there. */
function spoil(out: string, value: unknown): string[] {
  const db = openStore(join(out, 'swebatch.db'));
  const taken: string[] = [];
  const tables = [
    'runs',
    'arms',
    'instances',
    'trials',
    'attempts',
    'messages',
    'model_calls',
    'commands',
    'phases',
    'evaluations',
    'events',
  ];
  for (const table of tables)
    for (const { name, pk } of db.pragma(`table_info(${table})`) as { name: string; pk: number }[]) {
      if (pk > 0 || KEYS.test(name) || name === 'name') continue;
      try {
        db.prepare(`UPDATE ${table} SET ${name} = ? WHERE rowid = (SELECT min(rowid) FROM ${table})`).run(
          value,
        );
        taken.push(`${table}.${name}`);
      } catch {
        try {
          db.prepare(
            `UPDATE ${table} SET ${name} = ? WHERE attempt_id = (SELECT min(attempt_id) FROM ${table})`,
          ).run(value);
          taken.push(`${table}.${name}`);
        } catch {}
      }
    }
  db.close();
  return taken;
}

const VERBS = [
  ['ls'],
  ['ls', '--json'],
  ['ls', 'r1'],
  ['ls', 'r1', '--json'],
  ['show', 'r1', 'a__a-1'],
  ['show', 'r1', 'a__a-1', '--json'],
  ['show', 'r1', 'a__a-2'],
  ['report', 'r1'],
  ['report', 'r1', '--json'],
  ['report', 'r1', '--format', 'html'],
  ['compare', 'r1', 'r1'],
  ['export', 'r1', 'csv'],
  ['export', 'r1', 'preds'],
  ['verify', 'r1'],
];

afterEach(() => void vi.restoreAllMocks());

async function said(args: readonly string[]): Promise<string> {
  const texts: string[] = [];
  const keep = (text: unknown, ...rest: unknown[]): boolean => {
    texts.push(String(text));
    const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined;
    done?.();
    return true;
  };
  vi.spyOn(process.stdout, 'write').mockImplementation(keep as typeof process.stdout.write);
  vi.spyOn(process.stderr, 'write').mockImplementation(keep as typeof process.stderr.write);
  const code = await main(args);
  vi.restoreAllMocks();
  const text = texts.join('');
  // `verify` is there to say that such a record is broken.
  const wrong = /swebatch failed/.test(text) || (code === 5 && args[0] !== 'verify');
  return wrong ? `${args.join(' ')}: ${text.slice(0, 600)}` : '';
}

describe.each(Object.entries(ABSURD))('%s', (_name, value) => {
  test('in every column that takes it', async () => {
    process.env.SWEBATCH_DEBUG = '1';
    const out = recorded();
    expect(spoil(out, value).length).toBeGreaterThan(value instanceof Buffer ? 0 : 10);
    const failed: string[] = [];
    for (const args of VERBS) {
      const wrong = await said([...args, '-o', out]);
      if (wrong !== '') failed.push(wrong);
    }
    expect(failed).toEqual([]);
    const pageDir = join(out, 'page');
    mkdirSync(pageDir);
    writeFileSync(join(pageDir, 'index.html'), '<meta name="swebatch-mode" content="live">');
    expect(writeBundle(out, join(out, 'bundle'), { pageDir }).files).toBeGreaterThan(5);
    rmSync(out, { recursive: true });
  });
});
