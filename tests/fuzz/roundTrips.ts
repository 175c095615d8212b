// What one side writes, the other reads; what goes out is safe wherever it goes.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { OutsideRootError, pathInside } from '../../src/base/files/pathInside.ts';
import { parseJsonAsPython, pythonJson } from '../../src/base/python/json.ts';
import { PythonLiteralError, parsePythonLiteral } from '../../src/base/python/literal.ts';
import { harnessName, pathName } from '../../src/base/text/fileName.ts';
import { DANGEROUS } from '../../src/base/text/inert.ts';
import { createRedactor } from '../../src/base/text/redact.ts';
import { writePatch } from '../../src/environment/patch/gitPatch.ts';
import { parsePredictions, predsJson, predsJsonl } from '../../src/formats/predictions.ts';
import { doubtfulPaths } from '../../src/grading/doubts/patchDoubts.ts';
import { patchedPaths } from '../../src/grading/doubts/patchPaths.ts';
import { renderTerminal } from '../../src/report/render/renderers.ts';
import { render } from '../../src/template/render.ts';
import { parts } from '../../src/viewer/steps/stepFacts.ts';
import { SANITISERS } from '../support/foreign/baseReaders.ts';
import { SPEC } from '../support/foreign/gradingReaders.ts';
import { COMMON } from '../support/foreign/worstText.ts';
import { CORPORA, textLike } from './corpus.ts';
import { type Target, target } from './target.ts';

function same(a: unknown, b: unknown, what = 'differ'): void {
  if (!isDeepStrictEqual(a, b)) throw new Error(`${what}:\n${JSON.stringify(a)}\n${JSON.stringify(b)}`);
}
const holds = (fact: boolean, what: string): void => {
  if (!fact) throw new Error(what);
};

const text = textLike(CORPORA.base!(), COMMON);
const whole = fc.string({ unit: 'binary' }).map((each) => each.toWellFormed());
const id = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/);

const prediction = fc.record(
  {
    model_name_or_path: fc.oneof(whole, fc.constantFrom('None', 'a/b')).filter((name) => name !== ''),
    instance_id: id,
    model_patch: fc.oneof(
      whole,
      text.map((each) => each.toWellFormed()),
    ),
  },
  { noNullPrototype: true },
);
const predictions = fc.property(
  fc.uniqueArray(prediction, { minLength: 1, maxLength: 5, selector: (p) => p.instance_id }),
  (rows) => {
    for (const [written, name] of [
      [predsJson(rows), 'preds.json'],
      [predsJsonl(rows), 'all.jsonl'],
    ] as const) {
      const read = parsePredictions(Buffer.from(written), name);
      same(
        read.ok && new Map(read.predictions.map((p) => [p.instance_id, p])),
        new Map(rows.map((p) => [p.instance_id, p])),
      );
    }
  },
);

/** Python evaluates a list of texts and says for each its value as JSON, or that it is none. */
const PYTHON = `
import ast, json, sys
def plain(v):
    if isinstance(v, dict): return {'dict': sorted([str(k), plain(x)] for k, x in v.items())}
    if isinstance(v, (list, tuple)): return [plain(x) for x in v]
    if isinstance(v, str) or v is None or isinstance(v, bool): return v
    if isinstance(v, (int, float)): return repr(float(v))
    raise ValueError
out = []
for text in json.load(sys.stdin):
    try:
        value = ast.literal_eval(text)
        out.append('tuple' if isinstance(value, tuple) else {'value': plain(value)})
    except Exception: out.append(None)
json.dump(out, sys.stdout)
`;
const hasPython = spawnSync('python3', ['-c', 'pass']).status === 0;

const literalPiece = fc.constantFrom(
  "'a'",
  '"b"',
  "'''c\n'''",
  '[',
  ']',
  '(',
  ')',
  ',',
  ', ',
  '{',
  '}',
  ': ',
  'None',
  'True',
  '1',
  '-2',
  '1.5',
  '1e3',
  '_',
  "r'\\x'",
  "u'é'",
  "'\\x41\\u00e9\\n\\'\\N'",
  ' ',
  '\n',
  '#',
  '\\',
  '0x1',
  '007',
  "'\\777'",
  'a',
  '+',
  '.5',
  '1_0',
); // prettier-ignore
/** Forms that Python knows and no dataset uses: numbers of other kinds, bytes, comments, sums, sets. */
const UNUSUAL = /[#jJ+-]|0[0-9xXoObB_]|[bB]['"]|\{[^:]*\}|__|_\b|\d_|\\N|f['"]|\.{3}|\d[.eE]|set/;
const literalTexts = fc.array(
  fc.oneof(
    fc.array(literalPiece, { maxLength: 8 }).map((all) => all.join('')),
    fc
      .array(fc.string({ unit: 'grapheme' }), { maxLength: 4 })
      .map((all) => JSON.stringify(all).replaceAll(/\\u[0-9a-f]{4}/g, 'x')),
  ),
  { minLength: 100, maxLength: 100 },
);

/** As PYTHON writes a value. */
function asPlain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asPlain);
  if (typeof value === 'number') return value;
  if (typeof value !== 'object' || value === null) return value;
  return { dict: Object.entries(value).map(([key, inner]) => [key, asPlain(inner)]) };
}
const numbersApart = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_key, inner: unknown) =>
    typeof inner === 'string' && /^-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)$/.test(inner)
      ? Number(inner)
      : inner,
  );

const literals = fc.property(literalTexts, (texts) => {
  const out = execFileSync('python3', ['-c', PYTHON], {
    input: JSON.stringify(texts),
    maxBuffer: 1e8,
  }).toString();
  const wanted = JSON.parse(out) as ({ value: unknown } | null)[];
  texts.forEach((each, i) => {
    if (UNUSUAL.test(each) || /[\x00-\x1f]/.test(each.replaceAll(/[\n ]/g, '')) || /^\s/.test(each)) return;
    let ours: { value: unknown } | null = null;
    try {
      ours = { value: asPlain(parsePythonLiteral(each)) };
    } catch (error) {
      if (!(error instanceof PythonLiteralError)) throw error;
    }
    const known = wanted[i] ?? null;
    // A line break outside of brackets ends an expression of Python; here strings on both sides of it are one.
    if (each.includes('\n') && !/^[[(]/.test(each)) return;
    // A tuple may stand without brackets there; dicts and sets may have one key twice.
    if ((wanted[i] as unknown) === 'tuple') return;
    if (/^[^[({]*,|^\(.*\),/.test(each) || each.includes('{')) return;
    same(numbersApart(ours), numbersApart(known), `literal ${JSON.stringify(each)}`);
  });
});

const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false),
    fc.integer(),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

const file = fc.tuple(
  fc.constantFrom('a.py', 'b/c d.txt', 'é.md', 'q"uote', 'tab\there', 'b/deep/x'),
  fc.option(
    fc.array(
      fc.constantFrom('a\n', 'b\n', '\n', '\r\n', 'é\n', '\0', '+x\n', '--- a/x\n', '\\\n', 'no end'),
      { maxLength: 12 },
    ),
  ),
  fc.option(
    fc.array(
      fc.constantFrom('a\n', 'c\n', '\n', '\r\n', '\xff\n', '@@ -1 +1 @@\n', 'diff --git a/z b/z\n', 'end'),
      { maxLength: 12 },
    ),
  ),
);
const bytesOf = (lines: string[] | null) => (lines ? Buffer.from(lines.join(''), 'latin1') : undefined);

async function patchApplies(
  files: readonly (readonly [string, string[] | null, string[] | null])[],
): Promise<void> {
  // A file that is on neither side is no change.
  const changes = files
    .filter(([, old, fresh]) => old ?? fresh)
    .map(([path, old, fresh]) => ({ path, before: bytesOf(old), after: bytesOf(fresh) }));
  const version = (content: Buffer | undefined) => (content ? { mode: '100644', content } : undefined);
  const patch = await writePatch(
    changes.map(({ path, before, after }) => ({ path, before: version(before), after: version(after) })),
  );
  const changed = changes.filter(
    ({ before, after }) =>
      (before === undefined) !== (after === undefined) || (before && after && !before.equals(after)),
  );
  const named = new Set(patchedPaths(patch.toString('latin1')));
  for (const { path } of changed)
    holds(
      named.has(path) || named.has(Buffer.from(path).toString('latin1')),
      `${path} is not among the paths ${[...named].join(', ')}`,
    );
  if (patch.length === 0) return;
  const root = mkdtempSync(join(tmpdir(), 'swebatch-fuzz-'));
  try {
    for (const { path, before } of changes)
      if (before) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), before);
      }
    execFileSync('git', ['apply', '--whitespace=nowarn', '-'], {
      cwd: root,
      input: patch,
      env: { PATH: process.env.PATH ?? '', GIT_CEILING_DIRECTORIES: tmpdir(), HOME: root },
    });
    for (const { path, after } of changes)
      if (after) holds(readFileSync(join(root, path)).equals(after), `${path} came out otherwise`);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Line feed and tab may stay where a text has lines. */
const steering = (shown: string): boolean => DANGEROUS.test(shown.replaceAll(/[\n\t]/g, ' '));
const safe = (name: string, sanitise: (text: string) => string): Target =>
  target(
    `${name} leaves nothing that steers`,
    fc.property(text, (given) => {
      DANGEROUS.lastIndex = 0;
      holds(!steering(sanitise(given)), `${JSON.stringify(sanitise(given))} still steers`);
    }),
  );

const segment = fc.oneof(
  fc.constantFrom(
    '..',
    '.',
    '',
    'a',
    '../..',
    '/',
    'a/../b',
    '\0',
    'é',
    ' ',
    '...',
    'a'.repeat(300),
    '~',
    'C:\\x',
    '..\\..',
  ),
  fc.string({ unit: 'binary' }),
); // prettier-ignore

const SECRET = 'sk-Zq81hT5uYb3nWc7dXe9fAg2h';
const secrets = createRedactor([{ name: 'KEY', value: SECRET }]);
const around = fc.constantFrom(
  SECRET,
  encodeURIComponent(SECRET),
  Buffer.from(SECRET).toString('base64'),
  JSON.stringify(SECRET),
  'content',
  'key',
);

const keysOf = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(keysOf)
    : typeof value === 'object' && value !== null
      ? Object.entries(value).map(([key, inner]) => [key, keysOf(inner)])
      : typeof value;

const STANDARD = ['json', 'unittest', 'pytest', 'os', 'random', 'xml', '_pytest', 'typing'];
const folder = fc.constantFrom('', 'src/', 'lib/', 'test/', 'tests/', 'pkg/', 'a/tests/');
const suffix = fc.constantFrom(
  '.py',
  '.pyc',
  '/__init__.py',
  '.cpython-312-x86_64-linux-gnu.so',
  '.txt',
  '.md',
  '/a.py',
);

export const ROUND_TRIPS: readonly Target[] = [
  target('predictions', predictions),
  ...(hasPython ? [target('Python literals as python3 reads them', literals)] : []),
  target(
    'JSON of Python',
    fc.property(json, (value) => {
      const read = parseJsonAsPython(pythonJson(value));
      same(read.ok && read.value, value);
    }),
  ),
  target(
    'JSON as JSON.parse takes it',
    fc.property(text, (given) => {
      let known: { value: unknown } | null = null;
      try {
        known = { value: JSON.parse(given) };
      } catch {}
      const read = parseJsonAsPython(given);
      if (known) same(read.ok ? { value: read.value } : null, known);
    }),
  ),
  target(
    'patches that git applies',
    fc.asyncProperty(fc.uniqueArray(file, { maxLength: 3, selector: ([path]) => path }), patchApplies),
  ),
  ...Object.entries(SANITISERS).map(([name, sanitise]) => safe(name, sanitise)),
  safe('a report on a terminal', (given) =>
    renderTerminal([
      { kind: 'heading', level: 1, text: given },
      { kind: 'table', head: ['instance', given], align: ['left', 'right'], rows: [[given, given]] },
      { kind: 'lines', lines: [given] },
      { kind: 'ids', label: given, ids: [given] },
    ]),
  ),
  target(
    'paths stay inside their root',
    fc.property(fc.array(segment, { maxLength: 4 }), (names) => {
      let path: string;
      try {
        path = pathInside('/no such root', ...names);
      } catch (error) {
        if (!(error instanceof OutsideRootError)) throw error;
        return;
      }
      holds(path === '/no such root' || path.startsWith('/no such root/'), `${path} is outside`);
      holds(!path.split('/').includes('..') && !path.includes('\0'), `${path} leaves its root`);
    }),
  ),
  target(
    'names of files are one name',
    fc.property(fc.oneof(segment, text), (name) => {
      for (const made of [pathName(name), harnessName(name)]) {
        holds(
          made !== '' && made !== '.' && made !== '..' && !made.includes('/'),
          `${JSON.stringify(made)} is no name`,
        );
        holds(Buffer.byteLength(made) <= 255, `${made.length} characters`);
      }
    }),
  ),
  target(
    'no secret is left in a text, and JSON keeps its keys',
    fc.property(fc.array(fc.oneof(around, text), { maxLength: 5 }), json, (pieces, value) => {
      holds(!secrets.text(pieces.join('')).includes(SECRET), 'the secret is still there');
      const written = JSON.stringify({
        content: pieces,
        [SECRET]: value,
        nested: JSON.stringify({ content: pieces }),
      });
      const clean = secrets.json(written);
      same(keysOf(JSON.parse(clean)), keysOf(JSON.parse(written)), 'another structure');
      same(Object.keys(JSON.parse((JSON.parse(clean) as { nested: string }).nested) as object), ['content']);
    }),
  ),
  target(
    'a value in a template is not a template',
    fc.property(text, (given) => same(render('<{{ a }}>', { a: given }), `<${given}>`)),
  ),
  target(
    'parts of a reply stand in it in their order',
    fc.property(
      textLike([], ['```bash\n', '```\n', '\n```', '``` ', '```\r\n', 'ls\n', '\n', 'a', '~~~\n']),
      (reply) => {
        let at = 0;
        for (const part of parts(reply)) {
          const found = reply.indexOf(part.text, at);
          holds(found >= at, `${JSON.stringify(part.text)} is not there, or out of order`);
          at = found + part.text.length;
        }
      },
    ),
  ),
  target(
    'fenced blocks of a reply come out as they went in',
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('bash', '', 'python'), fc.stringMatching(/^[a-z #]{1,20}$/)), {
        maxLength: 5,
      }),
      (blocks) => {
        const reply = blocks
          .map(([language, code]) => `thought\n\`\`\`${language}\n${code}\n\`\`\`\n`)
          .join('');
        same(
          parts(reply).flatMap((part) => (part.kind === 'code' ? [part.text] : [])),
          blocks.map(([, code]) => code).filter((code) => code.trim() !== ''),
        );
      },
    ),
  ),
  target(
    'modules that shadow others are seen',
    fc.property(
      folder,
      fc.oneof(fc.constantFrom(...STANDARD), fc.stringMatching(/^[a-z]{3,8}zq$/)),
      suffix,
      (where, name, end) => {
        const path = `${where}${name}${end}`;
        const found = doubtfulPaths(SPEC, `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+x\n`).some(
          ({ rule }) => rule === 'shadows_modules',
        );
        const expected =
          STANDARD.includes(name) &&
          !/^(?:pkg|a\/tests)\//.test(where) &&
          !['.txt', '.md', '/a.py'].includes(end);
        holds(found === expected, `${path}: ${found ? 'flagged' : 'not flagged'}`);
      },
    ),
  ),
];
