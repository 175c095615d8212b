// A submission is complete or it is refused (T-60's last sentence).
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createRedactor } from '../../../src/base/text/redact.ts';
import {
  draftMetadata,
  entryName,
  parseMetadata,
  reviewSubmission,
  sameModel,
} from '../../../src/report/submission/review.ts';
import {
  deriveResults,
  type SubmissionRequest,
  scanForSecrets,
  writeSubmission,
} from '../../../src/report/submission/writeSubmission.ts';
import type { Store } from '../../../src/store/open.ts';
import { loadRunData } from '../../../src/store/records/runData.ts';
import { type Happened, openMemory, type PlannedRun, recordRun } from '../recordedRun.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-submission-'));
afterAll(() => rmSync(home, { recursive: true }));
let serial = 0;

const ids = Array.from({ length: 20 }, (_, i) => `a__a-${String(i + 1).padStart(2, '0')}`);
const good: Happened = { outcome: 'resolved' };

function prepared(planned: Partial<PlannedRun>, log = 'test output'): { db: Store; runId: number } {
  const db = openMemory();
  const runId = recordRun(db, { ids, happened: () => [good], ...planned });
  // Reports and logs as the grader leaves them.
  for (const e of db.prepare('SELECT id, instance_id, resolved FROM evaluations').all() as {
    id: number;
    instance_id: string;
    resolved: number;
  }[])
    db.prepare('UPDATE evaluations SET report = ?, log = ? WHERE id = ?').run(
      JSON.stringify({ [e.instance_id]: { resolved: e.resolved === 1 } }),
      gzipSync(log),
      e.id,
    );
  return { db, runId };
}

const submit = ({ db, runId }: { db: Store; runId: number }, more: Partial<SubmissionRequest> = {}) =>
  writeSubmission({
    store: db,
    data: loadRunData(db, runId)!,
    arm: 'default',
    target: join(home, String(++serial)),
    split: 'verified',
    system: 'My System',
    metadata: null,
    redactor: createRedactor([]),
    ...more,
  });

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile())
    .map((e) => relative(folder, join(e.parentPath, e.name)))
    .sort();

describe('a night with an unresolved outage', () => {
  const outage = (retried: boolean) => (id: string) =>
    id === 'a__a-06'
      ? retried
        ? [{ reason: 'env_died' as const }, good]
        : [{ reason: 'env_died' as const }]
      : [good];

  test('is refused in the words of T-60, and nothing is left behind', async () => {
    const target = join(home, 'refused');
    const found = await submit(prepared({ happened: outage(false) }), { target });
    expect(found).toMatchObject({ ok: false, problems: ['1 infra instance unresolved; 19/20 predictions'] });
    expect(existsSync(target)).toBe(false);
  });

  test('is written once it was tried again, in the layout the board reads', async () => {
    const run = prepared({
      happened: (id) =>
        id === 'a__a-02' ? [{ patch: '', outcome: 'empty_patch', resolved: false }] : outage(true)(id),
    });
    const found = await submit(run);
    if (!found.ok) throw new Error(found.problems.join('\n'));
    expect(found.folder).toMatch(/evaluation\/verified\/20261121_my-system_default-2026-01-15$/);
    const files = filesOf(found.folder);
    expect(files).toEqual(
      [
        'README.md',
        'all_preds.jsonl',
        'metadata.yaml',
        'results/resolved_by_repo.json',
        'results/resolved_by_time.json',
        'results/results.json',
        ...ids.map((id) => `trajs/${id}.traj.json`),
        ...ids
          .filter((id) => id !== 'a__a-02')
          .flatMap((id) => ['patch.diff', 'report.json', 'test_output.txt'].map((f) => `logs/${id}/${f}`)),
      ].sort(),
    );
    const metadata = parse(readFileSync(join(found.folder, 'metadata.yaml'), 'utf8'));
    expect(metadata.tags.checked).toBe(false);
    expect(metadata.assets.logs).toMatch(
      /^s3:\/\/[a-z-]+\/verified\/20261121_my-system_default-2026-01-15\/logs$/,
    );
    expect(metadata.tags.system.attempts).toBe('1');
    const results = JSON.parse(readFileSync(join(found.folder, 'results/results.json'), 'utf8'));
    const db = run.db
      .prepare('SELECT instance_id FROM trial_results WHERE resolved = 1 ORDER BY 1')
      .all() as { instance_id: string }[];
    expect(results).toEqual({
      no_generation: ['a__a-02'],
      no_logs: [],
      resolved: db.map((r) => r.instance_id),
    });
    expect(readFileSync(join(found.folder, 'logs/a__a-01/test_output.txt'), 'utf8')).toBe('test output');
    const readme = readFileSync(join(found.folder, 'README.md'), 'utf8');
    expect(readme).toContain('19/20 = 95.0 % [76.4, 99.1]');
    expect(readme).toContain('Instances tried again: 1 (a\\_\\_a-06)');
    // The manifest lies outside the folder and covers every file.
    const manifest = readFileSync(found.manifest, 'utf8').trim().split('\n');
    expect(manifest).toHaveLength(files.length);
    for (const entry of manifest) {
      const [hash, path] = entry.split('  ');
      expect(
        createHash('sha256')
          .update(readFileSync(join(found.folder, path!)))
          .digest('hex'),
      ).toBe(hash);
    }
    expect(found.warnings.join()).toContain('20 instances, but verified has 500');
  });

  test('an entry that exists is not overwritten', async () => {
    const run = prepared({});
    const target = join(home, 'twice');
    expect((await submit(run, { target })).ok).toBe(true);
    expect(await submit(run, { target })).toMatchObject({
      ok: false,
      problems: [expect.stringContaining('exists already')],
    });
  });
});

describe('the review', () => {
  const review = (planned: Partial<PlannedRun>, more: object = {}) => {
    const { db, runId } = prepared(planned);
    return reviewSubmission({
      data: loadRunData(db, runId)!,
      arm: 'default',
      redone: [],
      ...more,
    });
  };
  test('a run that worked on an instance again after a result states two attempts', () => {
    expect(review({}).attempts).toBe('1');
    expect(review({}, { redone: ['a__a-01'] }).attempts).toBe('2+');
    expect(review({ epochs: 2 })).toMatchObject({
      attempts: '2+',
      warnings: [expect.stringContaining('2 epochs')],
    });
  });
  test('unsealed history and changing models are refused', () => {
    const { db, runId } = prepared({});
    db.prepare("UPDATE attempts SET history = 'failed' WHERE id = 1").run();
    db.prepare("UPDATE model_calls SET model_answered = 'other' WHERE id = 1").run();
    const data = loadRunData(db, runId)!;
    const problems = reviewSubmission({ data, arm: 'default', redone: [] }).problems;
    expect(problems.join('\n')).toMatch(/history was not sealed for 1 instance.*\n.*--accept-model-change/);
    const accepted = reviewSubmission({
      data,
      arm: 'default',
      redone: [],
      acceptModelChange: true,
    });
    expect(accepted.problems).toHaveLength(1);
  });
  test('another model than the one that was asked for is refused, also when it answered from the first call on', () => {
    const { db, runId } = prepared({});
    const problems = () =>
      reviewSubmission({ data: loadRunData(db, runId)!, arm: 'default', redone: [] }).problems;
    expect(problems()).toEqual([]);
    db.prepare("UPDATE model_calls SET model_answered = 'vendor/turbo'").run();
    expect(problems().join()).toContain('vendor/default was asked for and vendor/turbo answered');
  });
  test('a prefix of a router and the date of a snapshot are the same model', () => {
    expect(sameModel('gpt-5', 'gpt-5-2026-08-07')).toBe(true);
    expect(sameModel('gpt-5', 'openai/GPT-5')).toBe(true);
    expect(sameModel('anthropic/claude-x', 'claude-x-20260101')).toBe(true);
    expect(sameModel('gpt-5', 'gpt-5-mini')).toBe(false);
    expect(sameModel('gpt-5-2026-08-07', 'gpt-5-2026-10-01')).toBe(false);
  });
  test('a verdict without its patch is refused', () => {
    const { db, runId } = prepared({});
    db.prepare('UPDATE attempts SET model_patch = NULL WHERE id = 3').run();
    const { problems } = reviewSubmission({
      data: loadRunData(db, runId)!,
      arm: 'default',
      redone: [],
    });
    expect(problems.join()).toContain('the patch of 1 instance is not known: a__a-03');
  });
  test('an ungraded prediction is refused', () => {
    const found = review({ happened: (id) => [id === 'a__a-01' ? {} : good] });
    expect(found.problems).toEqual(['1 prediction without a verdict: a__a-01; run "evaluate" first']);
  });
});

describe('metadata', () => {
  const valid = draftMetadata({ models: ['claude-x-20260101'], attempts: '1', place: 'verified/e' }).metadata;
  test('types are checked: the truthy text that shows a false badge is refused', () => {
    expect(parseMetadata(valid).ok).toBe(true);
    const wrong = parseMetadata({
      ...valid,
      tags: { ...valid.tags, checked: 'false (See README.md)', system: { attempts: 1 } },
    });
    expect(wrong).toMatchObject({ ok: false });
    if (!wrong.ok)
      expect(wrong.problems.map((p) => p.split(':')[0])).toEqual([
        'metadata tags.checked',
        'metadata tags.system.attempts',
      ]);
  });
  test('the older flat form is refused, because the board drops it silently', () => {
    expect(parseMetadata({ name: 'x', oss: true, site: 'y', verified: false }).ok).toBe(false);
  });
  test('the entry is named by date, system and model', () => {
    expect(entryName('2026-11-21T00:00:00Z', 'My System!', 'vendor/Model 4.5')).toBe(
      '20261121_my-system_model-4.5',
    );
    expect(entryName('2026-11-21T00:00:00Z', '../..', '..')).toBe('20261121_unnamed_unnamed');
  });
});

describe('results', () => {
  const row = (id: string, more: object = {}) => ({
    instanceId: id,
    repo: 'a/a',
    createdAt: '2019-05-01T00:00:00Z',
    modelPatch: 'diff',
    report: JSON.stringify({ [id]: { resolved: true } }),
    hasLog: true,
    resolved: true,
    ...more,
  });
  test('are derived from the reports, and a disagreement with the database is named', () => {
    const found = deriveResults([
      row('b-2'),
      row('a-1', { modelPatch: '', resolved: false }),
      row('c-3', { report: null, hasLog: false, createdAt: '', resolved: false }),
      row('d-4', { resolved: false }),
    ]);
    expect(found.results).toEqual({ no_generation: ['a-1'], no_logs: ['c-3'], resolved: ['b-2', 'd-4'] });
    expect(found.byRepo).toEqual({ 'a/a': { resolved: 2, total: 4 } });
    expect(found.byTime).toEqual({ '2019': { resolved: 2, total: 3 }, unknown: { resolved: 0, total: 1 } });
    expect(found.disagreements).toEqual(['d-4']);
  });
});

describe('secrets', () => {
  const canary = 'canary-value-1234567890';
  test('a value of this machine is found in every encoding and cannot be waved through', async () => {
    const redactor = createRedactor([{ name: 'KEY', value: canary }]);
    for (const form of [canary, Buffer.from(canary).toString('base64'), encodeURIComponent(canary)]) {
      const found = await submit(prepared({}, `line one\nsee ${form}`), { redactor, acceptFindings: true });
      if (found.ok) throw new Error('published a secret');
      expect(found.problems[0]).toContain('logs/a__a-01/test_output.txt:2: a secret of this machine');
      expect(found.problems.join()).not.toContain(canary);
    }
  });
  test('shapes of keys stop it until somebody has looked', async () => {
    const run = () => prepared({}, `token ghp_${'a'.repeat(36)}`);
    expect((await submit(run())).ok).toBe(false);
    expect((await submit(run(), { acceptFindings: true })).ok).toBe(true);
  });
  test('ordinary text is no finding', () => {
    const text = 'sk-learn https://example.org/a:b@c AKIA hf_model task-runner sk-short';
    expect(scanForSecrets('f', text, createRedactor([]))).toEqual([]);
  });
});
