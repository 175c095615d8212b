// A page of one version must not misread the documents of another: both say which documents they know.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sha256 } from '../../src/base/sha256.ts';
import { DOCUMENTS_VERSION } from '../../src/viewer/documents/documents.ts';
import { createDocuments } from '../../src/viewer/documents/resources.ts';
import { addRun, openFixture } from './fixture.ts';

/** The fields of a document, and of the first thing in each of its lists. */
function fieldsOf(document: unknown): unknown {
  if (Array.isArray(document)) return document.length > 0 ? [fieldsOf(document[0])] : [];
  if (typeof document !== 'object' || document === null) return 'value';
  return Object.fromEntries(
    Object.entries(document)
      .sort()
      .map(([name, value]) => [name, Array.isArray(value) || name === 'summary' ? fieldsOf(value) : 'value']),
  );
}

test('a change of a path or a field raises the version of the documents', () => {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-documents-'));
  try {
    const store = openFixture(dir);
    const [run, other] = [1, 2].map((day) =>
      addRun(store, { name: `night${day}`, instances: 4, steps: 2, seed: 1, day }),
    );
    const documents = createDocuments(store, { title: '' });
    const { rows } = documents.read(`runs/${run}/trials/0`) as {
      rows: { attempt: number; instance_id: string }[];
    };
    const { attempt, instance_id } = rows[0]!;
    const paths = {
      runs: 'runs',
      run: `runs/${run}`,
      trials: `runs/${run}/trials/0`,
      map: `runs/${run}/map/0`,
      attempt: `attempts/${attempt}`,
      messages: `attempts/${attempt}/messages/0`,
      raw: `attempts/${attempt}/raw/0`,
      evaluation: 'evaluations/1',
      history: `history/${instance_id}`,
      compare: `compare/${run}.0/${other}.0`,
    };
    const fields = Object.fromEntries(
      Object.entries(paths).map(([name, path]) => [name, fieldsOf(documents.read(path))]),
    );
    // Where this differs, raise DOCUMENTS_VERSION in src/viewer/documents/documents.ts and write both down here.
    expect({ version: DOCUMENTS_VERSION, fields: sha256(JSON.stringify(fields)).slice(0, 12) }).toEqual({
      version: '2',
      fields: '47ba56b4509e',
    });
    store.close();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
