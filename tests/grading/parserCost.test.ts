// No log can make a parser quadratic: a hundred thousand characters of any repeated fragment of its own vocabulary stay cheap.

import { describe, expect, test } from 'vitest';
import { parsePredictions } from '../../src/formats/predictions.ts';
import { patchedPaths } from '../../src/grading/doubts/patchPaths.ts';
import { type LogParser, nameBudget, ParserError } from '../../src/grading/parsers/logParser.ts';
import { OFFICIAL_PARSERS } from '../../src/grading/parsers/parserRegistry.ts';
import { classifyLog, readLog } from '../../src/grading/readLog.ts';
import { cpuMs } from '../support/cpuTime.ts';
import { LOG_OPENINGS } from '../support/foreign/worstText.ts';
import fc from '../support/property.ts';

const CHARACTERS = 100_000;
/** Of processor time. Linear ones take about 10 ms here, a quadratic one minutes. */
const LIMIT_MS = 1500;

const cost = (parser: LogParser, log: string): number =>
  cpuMs(() => {
    for (const version of ['1.27', '9.5', '2.4'])
      try {
        parser(log, { instanceId: 'jekyll__jekyll-9141', version, harness: 'v5' });
      } catch (error) {
        if (!(error instanceof ParserError)) throw error;
      }
  });

const parsers = [...new Map(Object.entries(OFFICIAL_PARSERS).map(([id, parser]) => [parser, id]))];

describe('cost of a parser is linear in its log', () => {
  test.each(parsers.map(([parser, id]) => [id, parser] as const))('%s', (_id, parser) => {
    const piece = fc.constantFrom(...LOG_OPENINGS);
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 3 }),
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        piece,
        (head, body, tail) => {
          const fragment = body.join('');
          const log = head.join('') + fragment.repeat(Math.ceil(CHARACTERS / fragment.length)) + tail;
          expect(cost(parser, log)).toBeLessThan(LIMIT_MS);
        },
      ),
      { numRuns: 12, seed: 20240501 },
    );
  });

  test('each opening repeated by itself is cheap for every parser', () => {
    for (const opening of LOG_OPENINGS)
      for (const [parser, id] of parsers)
        expect(
          cost(parser, opening.repeat(Math.ceil(20_000 / opening.length))),
          `${id} on ${opening}`,
        ).toBeLessThan(LIMIT_MS);
  });

  test('markers, exit code and evidence are looked for in linear time', () => {
    const parser: LogParser = () => new Map();
    for (const opening of [
      '>>>>> Start Test Output',
      'Tests: ',
      'Test Suites: 1 a, ',
      '1',
      '>>>>> Test Exit Code: ',
      '\n# tests ',
      'Executed 1',
    ]) {
      const log = opening.repeat(Math.ceil(300_000 / opening.length));
      const took = cpuMs(() => readLog(log, parser, { instanceId: 'a', version: '', harness: 'v5' }));
      expect(took, opening).toBeLessThan(LIMIT_MS);
    }
  });
});

test('texts of models cost no more than their length: patches, predictions, signatures', () => {
  const pieces = [
    '"NaN\\"',
    'NaN',
    '\\',
    'diff --git "a/',
    'diff --git a/x b/',
    '--- "',
    '\\303',
    '@@ -1,9 +1,9 @@\n',
    'rename to ',
    'Killed\n',
    'Timeout error: 1',
  ] as const; // prettier-ignore
  for (const piece of pieces)
    for (const end of ['', '\n', '\\', '"']) {
      const text = piece.repeat(Math.ceil(300_000 / piece.length)) + end;
      const spent = cpuMs(() => {
        patchedPaths(text);
        parsePredictions(text, 'p.jsonl');
        parsePredictions(`[${text}`, 'p.json');
        classifyLog(text);
      });
      expect(spent, `${piece} … ${end}`).toBeLessThan(2 * LIMIT_MS);
    }
});

test('names of nested suites cannot grow far beyond the log', () => {
  const named = nameBudget('short log');
  const endless = 'x'.repeat(1024 * 1024);
  expect(() => {
    for (let i = 0; i < 100; i++) named(endless);
  }).toThrow(ParserError);
});

test('a truly quadratic parser would be caught', () => {
  /** It gives up once its three versions are behind the limit together: how far behind they would have come says nothing more. */
  const quadratic: LogParser = (log) => {
    const began = process.threadCpuUsage().user;
    let n = 0;
    for (let i = 0; i < log.length && process.threadCpuUsage().user - began < LIMIT_MS * 500; i++)
      for (let j = 0; j < log.length; j++) n += log.charCodeAt(j) & 1;
    return new Map([['n', String(n)]]);
  };
  // Well below the size of the logs above, also on a machine much faster than this.
  const sizes = [CHARACTERS / 4, CHARACTERS / 2, CHARACTERS];
  expect(sizes.some((size) => cost(quadratic, 'a'.repeat(size)) > LIMIT_MS)).toBe(true);
});
