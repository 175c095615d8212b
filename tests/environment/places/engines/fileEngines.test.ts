// A file of engines that others write while a run works: what it says is done, and nothing wrong in it stops anything.
import { describe, expect, test } from 'vitest';
import {
  engineLine,
  readEngineLine,
  readEngineList,
} from '../../../../src/environment/places/engines/engineSpec.ts';
import { createFileEngines } from '../../../../src/environment/places/engines/fileEngines.ts';
import fc from '../../../support/property.ts';

function bench() {
  const did: string[] = [];
  const said: string[] = [];
  const off = new Set<string>();
  let text: string | Error = '';
  const file = createFileEngines({
    path: 'engines.txt',
    async read() {
      if (text instanceof Error) throw text;
      return text;
    },
    async join(engine) {
      if (off.has(engine.host)) throw new Error('no answer');
      did.push(`+${engineLine(engine)}`);
    },
    drain: (host) => void did.push(`-${host}`),
    warn: (warning) => void said.push(warning),
  });
  /** What the file says now, seen twice: half-written texts are seen once. */
  const now = async (content: string | Error, looks = 2) => {
    text = content;
    for (let i = 0; i < looks; i++) await file.look();
    return did.splice(0);
  };
  return { now, said, off, file, did };
}

describe('the file of engines', () => {
  test('engines that appear join, at once at the first look; those that vanish are drained; the rest stays', async () => {
    const { now } = bench();
    expect(await now('lab1 slots=4\n# a comment\n\nssh://me@lab2 slots=8 zone=a\n', 1)).toEqual([
      '+lab1 slots=4',
      '+ssh://me@lab2 slots=8 zone=a',
    ]);
    expect(await now('ssh://me@lab2 slots=8 zone=a\nlab3')).toEqual(['-lab1', '+lab3 slots=0']);
    expect(await now('ssh://me@lab2 slots=2 zone=a\nlab3')).toEqual(['+ssh://me@lab2 slots=2 zone=a']);
    expect(await now('["lab3", {"host": "lab4", "slots": 1}]')).toEqual(['-ssh://me@lab2', '+lab4 slots=1']);
    expect(await now('')).toEqual(['-lab3', '-lab4']);
  });

  test('a bad line is a warning that is said once, and the others hold', async () => {
    const { now, said } = bench();
    expect(await now('lab1\nlab2 slots=many\nlab3 slots=2\nlab3 slots=3\n', 4)).toEqual([
      '+lab1 slots=0',
      '+lab3 slots=2',
    ]);
    expect(said).toEqual([
      'engines.txt: line 2: slots takes a whole number, not "many"; the other entries hold',
      'engines.txt: line 4: lab3 is named twice; the other entries hold',
    ]);
  });

  test('a half-written file does nothing; nor does one that is not there for a moment, or is no list', async () => {
    const { now, said } = bench();
    await now('lab1\nlab2\n');
    expect(await now('', 1)).toEqual([]);
    expect(await now('lab1\nla', 1)).toEqual([]);
    expect(await now('lab1\nlab2\nlab3\n', 1)).toEqual([]);
    expect(await now('lab1\nlab2\nlab3\n', 1)).toEqual(['+lab3 slots=0']);
    expect(await now(new Error('ENOENT'), 3)).toEqual([]);
    expect(await now('[{"host": "lab1"}', 3)).toEqual([]);
    expect(said).toEqual([
      'engines.txt: it cannot be read, and the engines stay as they are: ENOENT',
      'engines.txt: it is no list that can be read; the engines stay as they are',
    ]);
    expect(await now('lab1\nlab2\n')).toEqual(['-lab3']);
  });

  test('an engine that does not answer yet is tried at each look, with one warning, and keeps no other from joining', async () => {
    const { now, said, off, file, did } = bench();
    off.add('lab1');
    expect(await now('lab1\nlab2\n', 3)).toEqual(['+lab2 slots=0']);
    expect(said).toEqual(['engines.txt: lab1 does not join yet: no answer']);
    off.clear();
    await file.look();
    expect(did.splice(0)).toEqual(['+lab1 slots=0']);
    // One that never joined is not drained either.
    off.add('lab3');
    await now('lab1\nlab2\nlab3\n');
    expect(await now('lab1\nlab2\n')).toEqual([]);
  });

  test('one that a person drained does not join again while the file says nothing new of it', async () => {
    const { now } = bench();
    await now('lab1\nlab2\n');
    expect(await now('lab1\nlab2\nlab3\n')).toEqual(['+lab3 slots=0']);
  });
});

describe('a line', () => {
  test('is read as it was written', () => {
    const word = fc.stringMatching(/^[a-z0-9:/@._-]{1,20}$/);
    const name = fc.stringMatching(/^[a-z]{1,8}$/).filter((one) => one !== 'slots');
    const spec = fc.record({
      host: word,
      slots: fc.integer({ min: 0, max: 10_000 }),
      labels: fc.dictionary(name, word, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
    });
    fc.assert(
      fc.property(spec, (engine) => {
        expect(readEngineLine(engineLine(engine))).toEqual({ ok: true, engine });
      }),
    );
  });

  test('and a list of anything at all is read without an error', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.json({ maxDepth: 2 }), (text, json) => {
        for (const one of [text, json, `[${json}]`, `${text}\n${json}`]) readEngineList(one);
      }),
    );
  });
});
