// What a step does is read from its command: its kind, and the files that it names.
import { describe, expect, test } from 'vitest';
import { outputIn } from '../../../src/viewer/page/text/foreignText.ts';
import { colouringOf, diffPieces, jsonPieces } from '../../../src/viewer/page/text/jsonTokens.ts';
import { answersByCode, stepFacts } from '../../../src/viewer/steps/stepFacts.ts';
import { cpuMs } from '../../support/cpuTime.ts';

const shell = (text: string) => stepFacts([{ name: 'bash', text }]);

describe('stepFacts', () => {
  test.each([
    ['ls -F', 'search', []],
    ['cd /testbed && grep -rn "def x" --include=*.py .', 'search', []],
    ['cat /testbed/django/db/models/query.py', 'read', ['django/db/models/query.py']],
    ["sed -n '1,80p' ./astropy/modeling/separable.py", 'read', ['astropy/modeling/separable.py']],
    ["sed -i 's/a/b/' lib/matplotlib/axis.py", 'edit', ['lib/matplotlib/axis.py']],
    ["cat <<'EOF' > reproduce.py\nprint(1 > 0)\nEOF", 'edit', ['reproduce.py']],
    ['python reproduce.py 2>&1 | tail -5', 'run', ['reproduce.py']],
    ['python reproduce.py > /dev/null', 'run', ['reproduce.py']],
    ['./tests/runtests.py migrations', 'test', ['tests/runtests.py']],
    ['cd /testbed && python -m pytest sympy/core/tests/test_x.py -q', 'test', ['sympy/core/tests/test_x.py']],
    ["python -c \"open('a.py', 'w').write('')\"", 'edit', ['a.py']],
    ['git diff', 'read', []],
    ['git status', 'search', []],
    ['echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached', 'submit', []],
    ['if [ $a -gt 1 ]; then echo 1; fi', 'run', []],
  ])('%s', (command, kind, files) => {
    expect(shell(command)).toMatchObject({ kind, files });
  });

  test('tools of programs say by their name what they do, and their arguments name files', () => {
    const tool = (name: string) =>
      stepFacts([{ name, text: '{"file_path":"/testbed/a/b.py","content":"x"}' }]).kind;
    expect(['Read', 'Edit', 'Write', 'Grep', 'str_replace_editor'].map(tool)).toEqual([
      'read',
      'edit',
      'edit',
      'search',
      'edit',
    ]);
    expect(stepFacts([{ name: 'Read', text: '{"file_path":"/testbed/a/b.py"}' }]).files).toEqual(['a/b.py']);
  });

  test('of several actions the one that changes most says the kind; none is talk', () => {
    const two = stepFacts([
      { name: 'bash', text: 'cat a.py' },
      { name: 'bash', text: 'sed -i s/a/b/ b.py' },
    ]);
    expect(two).toMatchObject({ kind: 'edit', files: ['a.py', 'b.py'] });
    expect(stepFacts([])).toMatchObject({ kind: 'talk', files: [], command: '' });
  });

  test('commands that begin alike and end otherwise are told apart', () => {
    const long = `cat <<'EOF' > a.py\n${'x = 1\n'.repeat(200)}`;
    const [a, b] = [shell(`${long}y = 1\nEOF`), shell(`${long}y = 2\nEOF`)];
    expect(a.command).toBe(b.command);
    expect(a.digest).not.toBe(b.digest);
  });

  test('a megabyte of the worst is read in no time', () => {
    const took = cpuMs(() => {
      for (const word of ['cd ', 'a.', '/', '> ', 'cd a && ', '"', '--- ']) shell(word.repeat(200_000));
    });
    expect(took).toBeLessThan(2000);
  });
});

describe('colours', () => {
  test('JSON keeps every character, and names differ from values', () => {
    const json = '{"a": [1, -2.5e3, true, null], "b\\"c": "x\\\\", "nested": {"d": ""}}';
    const pieces = jsonPieces(json);
    expect(pieces.map((piece) => piece.text).join('')).toBe(json);
    expect(pieces.filter((piece) => piece.tone === 'string').map((piece) => piece.text)).toEqual([
      '"x\\\\"',
      '""',
    ]);
    expect(pieces.find((piece) => piece.text === '"b\\"c"')?.tone).toBe('word');
    for (const torn of ['{"a', '"\\', '[1,', '{"a": "\u202e'])
      expect(
        jsonPieces(torn)
          .map((p) => p.text)
          .join(''),
      ).toBe(torn);
  });

  test('a diff keeps every character, and its lines say what they are', () => {
    const diff = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n';
    expect(
      diffPieces(diff)
        .map((piece) => piece.text)
        .join(''),
    ).toBe(diff);
    expect(diffPieces(diff).map((piece) => piece.tone)).toEqual([
      'place',
      'place',
      'place',
      'place',
      'removed',
      'added',
      '',
      '',
    ]);
  });

  test('only what is one is coloured as one', () => {
    expect(colouringOf('{"a": 1}')).toBe('json');
    expect(colouringOf('{not json')).toBe('none');
    expect(colouringOf('[INFO] text')).toBe('none');
    expect(colouringOf('diff --git a/x b/x\n')).toBe('diff');
    expect(colouringOf('--- a list\n')).toBe('none');
  });
});

test('the output of an imported observation is found inside of what is wrapped around it', () => {
  expect(outputIn('<returncode>1</returncode>\n<output>\nno such file\n</output>')).toBe('no such file');
  expect(outputIn('<returncode>0</returncode>\n<output>\n</output>')).toBe('');
  expect(outputIn('<returncode>0</returncode>\n<output>\na</output>\nand more')).toBeUndefined();
  expect(outputIn('please read <output>')).toBeUndefined();
});

describe('exit code 1 as an answer', () => {
  test.each([
    'grep -rn separable .',
    'cd /testbed && grep -n "a|b; c" x.py',
    'ls src | grep foo',
    "git grep 'x && y'",
    'git diff --quiet',
    'timeout 60 rg needle',
    'LC_ALL=C grep x y 2>/dev/null',
    'test -f setup.py',
    'diff a b',
  ])('%s', (command) => expect(answersByCode(command)).toBe(true));

  test.each([
    'python -m pytest -q',
    'grep x y && python t.py',
    'grep x y | python t.py',
    'git diff --stat',
    'echo "grep x"',
    'python -c "import re; grep"',
    '',
  ])('not %s', (command) => expect(answersByCode(command)).toBe(false));
});
