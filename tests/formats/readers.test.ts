// What no reader of a foreign file may do: lose a row without a word, name the wrong line, or throw.

import { describe, expect, test } from 'vitest';
import { parseForeignJson } from '../../src/formats/foreignFile.ts';
import { readInstanceReport, reportedIds } from '../../src/formats/harness/instanceReport.ts';
import { readRunReport, runReportText } from '../../src/formats/harness/runReport.ts';
import { readLeaderboardResults } from '../../src/formats/leaderboard/results.ts';
import { readTrajectory } from '../../src/formats/miniSweAgent/trajectory.ts';
import { parsePredictions, predsJson, predsJsonl, readPredictions } from '../../src/formats/predictions.ts';
import fc from '../support/property.ts';

const id = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/);
const prediction = fc.record({
  model_name_or_path: fc.string({ minLength: 1, unit: 'binary' }).map((text) => text.toWellFormed()),
  instance_id: id,
  model_patch: fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
});

describe('predictions', () => {
  test('what we write comes back, as an object and as lines', () => {
    fc.assert(
      fc.property(fc.uniqueArray(prediction, { minLength: 1, selector: (p) => p.instance_id }), (rows) => {
        for (const [text, name] of [
          [predsJson(rows), 'preds.json'],
          [predsJsonl(rows), 'all_preds.jsonl'],
        ] as const) {
          const read = parsePredictions(text, name);
          expect(read.ok && new Map(read.predictions.map((p) => [p.instance_id, p]))).toEqual(
            new Map(rows.map((p) => [p.instance_id, p])),
          );
        }
      }),
    );
  });
  test('each row is a prediction, or a problem with its line and its id', () => {
    const patch = fc.oneof(fc.string(), fc.constant(null), fc.integer(), fc.constant({}));
    const rows = fc.uniqueArray(fc.tuple(id, fc.option(patch, { nil: undefined })), {
      minLength: 1,
      selector: ([name]) => name,
    });
    fc.assert(
      fc.property(rows, fc.boolean(), (pairs, asLines) => {
        const objects = pairs.map(([instance_id, model_patch]) => ({ instance_id, model_patch }));
        const text = asLines
          ? objects.map((row) => `${JSON.stringify(row)}\n`).join('')
          : JSON.stringify(objects, null, 2);
        const found = readPredictions(text, asLines ? 'p.jsonl' : 'p.json')!;
        const isText = ([, model_patch]: (typeof pairs)[number]) =>
          typeof model_patch === 'string' || model_patch === null;
        expect(found.predictions.map((p) => [p.instance_id, p.model_patch])).toEqual(pairs.filter(isText));
        const wrong = pairs.filter((pair) => !isText(pair)).map(([name]) => name);
        expect(found.problems.map((problem) => problem.id)).toEqual(wrong);
        const lines = text.split('\n');
        for (const { id: of, line } of found.problems)
          expect(asLines ? lines[line - 1] : lines[line]).toContain(
            `"instance_id":${asLines ? '' : ' '}"${of}"`,
          );
      }),
    );
  });
});

test('a problem of a report names the line where it stands', () => {
  const report = { resolved_ids: ['a-1'], unresolved_ids: ['a-2', '../a-3'], total_instances: 3 };
  for (const indent of [0, 1, 4]) {
    const text = JSON.stringify(report, null, indent);
    const read = readRunReport(`\n${text}`);
    const line = text.split('\n').findIndex((each) => each.includes('../a-3')) + 2;
    expect(read).toMatchObject({ ok: false, fault: 'damaged' });
    expect(!read.ok && read.message).toMatch(new RegExp(`^line ${line}: unresolved_ids.1: must be 1 to 128`));
  }
});

test('a trajectory says the line too', () => {
  const text = JSON.stringify({ info: { exit_status: 7 }, messages: [] }, null, 2);
  expect(readTrajectory(text)).toMatchObject({
    ok: false,
    message: expect.stringMatching(/^line 3: info\.exit_status: /),
  });
});

test('no text makes a reader throw', () => {
  const key = fc.constantFrom(
    ...[
      'resolved_ids',
      'resolved',
      'instance_id',
      'model_patch',
      'info',
      'messages',
      '__proto__',
      'constructor',
    ],
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(null, true, 7, 'a-1', '../x', ''),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }));
  const text = fc.oneof(
    fc.string(),
    value.map((each) => JSON.stringify(each)),
    fc.tuple(value, fc.nat()).map(([each, cut]) => JSON.stringify(each).slice(0, cut % 80)),
  );
  const report = runReportText({ resolved_ids: [] } as unknown as Parameters<typeof runReportText>[0]);
  expect(readRunReport(report).ok).toBe(true);
  fc.assert(
    fc.property(text, (body) => {
      parsePredictions(body, 'p.json');
      parsePredictions(body, 'p.jsonl');
      readRunReport(body);
      readInstanceReport(body, 'constructor');
      reportedIds(body);
      readLeaderboardResults(body);
      readTrajectory(body);
    }),
    { numRuns: 2000 },
  );
});

test('NaN and Infinity are null outside of text only', () => {
  expect(parseForeignJson('{"a": [NaN, -Infinity, "NaN \\" Infinity"], "NaN": Infinity}').value).toEqual({
    a: [null, null, 'NaN " Infinity'],
    NaN: null,
  });
});
