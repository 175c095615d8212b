/**
 * Doubts that the paths of a patch alone raise: files that decide how the tests run, or what runs beside them, and that neither the gold
 * patch nor the row's tests touch. All count against `resolved_strict`.
 */
import { compact } from '../../base/compact.ts';
import { TEST_RUNNERS } from '../../base/python/testRunners.ts';
import type { TestRun } from '../patchAndTests.ts';
import type { GradeSpec } from '../specs/spec.ts';
import { touchedPaths } from '../specs/spec.ts';
import type { Suspicion } from '../suspicion/commands.ts';
import { type ChangedLines, changedLines, patchedPaths } from './patchPaths.ts';

/** `strict` counts against `resolved_strict`. */
export type PatchDoubt = Pick<Suspicion, 'rule' | 'says' | 'evidence'> & { readonly strict: boolean };

export const finding = (rule: string, says: string, evidence: string, strict = true): PatchDoubt => ({
  rule,
  says,
  evidence,
  strict,
});

export const limitMet = (evidence: string): PatchDoubt =>
  finding('limit_met', 'the tests met a limit of their container', evidence, false);

/** Files that a test runner or the interpreter loads by itself. */
const LOADED_UNASKED =
  /(?:^|\/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|tox\.ini|sitecustomize\.py|usercustomize\.py|[^/]*\.pth|\.mocharc\.[^/]+|mocha\.opts|(?:jest|vitest|vite|karma|ava|babel|playwright|cypress)\.conf(?:ig)?\.[^/]+|\.babelrc(?:\.[^/]+)?|\.(?:npmrc|taprc|nycrc|rspec)|bunfig\.toml|\.cargo\/config(?:\.toml)?|phpunit\.xml(?:\.dist)?|junit-platform\.properties|META-INF\/services\/[^/]+|[^/]*\.(?:egg-info|dist-info)\/[^/]+)$/;

/** `sys.stdlib_module_names` of Python 3.11 and 3.12, without those that begin with _ and without `test`, a folder of many projects. */
const STANDARD = `
abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi
cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy
copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum
errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib
grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache
locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt
ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib
poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline
reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket
socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau
symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit tkinter token tokenize
tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave
weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo
`;
const SHADOWABLE: ReadonlySet<string> = new Set([...STANDARD.split(/\s+/), ...TEST_RUNNERS]);
/** Folders that runners put on the path of modules. */
const IMPORTED_FROM: ReadonlySet<string> = new Set(['', 'src', 'lib', 'test', 'tests']);

/** `unittest/__init__.py`, `json.py`, `src/pytest.py`; in other languages, everything in the place of installed packages. */
function shadows(path: string): boolean {
  const parts = path.split('/');
  if (parts.includes('node_modules')) return true;
  const last = parts.at(-1)!;
  // A compiled module says its platform between name and suffix: `json.cpython-312.so`.
  const dot = last.endsWith('.so') ? last.indexOf('.', 1) : /\.pyc?$/.test(last) ? last.lastIndexOf('.') : 0;
  if (dot < 1) return false;
  const file = last.slice(0, dot);
  const name = file === '__init__' ? parts.at(-2) : file;
  const folder = parts.slice(0, file === '__init__' ? -2 : -1).join('/');
  return name !== undefined && SHADOWABLE.has(name) && IMPORTED_FROM.has(folder);
}

const CODE = /\.(?:py|pyi|js|cjs|mjs|jsx|ts|cts|mts|tsx|rb|php|java|go|rs|c|cc|cpp|h|hpp)$/;
const TEST_FOLDER = /^(?:tests?|testing|specs?|__tests__|e2e)$/i;
/** A file that a runner collects by its name is a test itself and does not help other tests. */
const TEST_FILE = /^(?:tests?\.\w+|test_.*|.*_(?:test|spec)\.\w+|.*\.(?:test|spec)\.\w+)$/;

/** Linux takes no longer path. */
const LONGEST_PATH = 4096;
const DEEPEST = 64;

/** Named as a test, or in a folder of tests. */
export const isTestFile = (path: string): boolean => {
  const parts = path.split('/', DEEPEST + 1);
  return TEST_FILE.test(parts.at(-1)!) || parts.slice(0, -1).some((part) => TEST_FOLDER.test(part));
};

/**
 * A package or a compiled module that is imported in the place of one of the row's own test files: `tests/test_fields/__init__.py`
 * for `tests/test_fields.py`. Names of tests say modules too: `test_a (fields.tests.Case)`.
 */
function standsIn(spec: DoubtedRow): (path: string) => boolean {
  const own = new Set(touchedPaths(spec.testPatch));
  const stems = new Set<string>();
  const modules = new Set<string>();
  for (const id of [...own, ...spec.failToPass, ...spec.passToPass]) {
    const file = id.split('::')[0]!;
    const ending = /\.(?:py|js|cjs|mjs|jsx|ts|tsx)$/.exec(file);
    if (ending && ending.index > 0) stems.add(file.slice(0, ending.index));
    const dotted = /\(([\w.]{1,400})\)$/.exec(id)?.[1]?.split('.') ?? [];
    for (let length = 2; length <= dotted.length; length++) modules.add(dotted.slice(0, length).join('/'));
  }
  return (path) => {
    if (own.has(path)) return false;
    const folder = folderOf(path);
    const last = path.slice(folder === '' ? 0 : folder.length + 1);
    const package_ = /^(?:__init__\.pyc?|index\.\w+|package\.json)$/.test(last);
    const compiled = /\.(?:so|pyd|pyc)$/.test(last) && path.slice(0, path.indexOf('.', folder.length + 1));
    // A link to a package.
    const bare = !last.includes('.') && path;
    for (const stem of [package_ && folder, compiled, bare]) {
      if (stem === false) continue;
      if (stems.has(stem)) return true;
      for (let at = stem.indexOf('/'); at >= 0; at = stem.indexOf('/', at + 1))
        if (modules.has(stem.slice(at + 1)) && [...own].some((one) => one.startsWith(`${stem}.`)))
          return true;
    }
    return false;
  };
}

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));

/** The folders of the row's own tests and those around them, as far as they are folders of tests. */
function supportFolders(spec: DoubtedRow): Set<string> {
  const named = [...spec.failToPass, ...spec.passToPass].flatMap((id) =>
    id.includes('::') ? [id.split('::')[0]!] : [],
  );
  const folders = new Set<string>();
  for (const file of new Set([...touchedPaths(spec.testPatch), ...named])) {
    // Deeper ones are nobody's tests, and each of their folders would be looked at from its beginning.
    const parts = file.split('/', DEEPEST + 1);
    if (file.length > LONGEST_PATH || parts.length > DEEPEST) continue;
    const first = parts.slice(0, -1).findIndex((part) => TEST_FOLDER.test(part));
    if (first < 0) continue;
    for (
      let folder = folderOf(file), left = parts.length - 1;
      left > first;
      left--, folder = folderOf(folder)
    )
      folders.add(folder);
  }
  return folders;
}

/** Code that the row's tests may load: `tests/__init__.py`, `tests/helpers.py`. */
function supports(path: string, folders: ReadonlySet<string>): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return CODE.test(name) && !TEST_FILE.test(name) && folders.has(folderOf(path));
}

export const few = (names: readonly string[]): string =>
  names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');

/** The fields of an instance that say which paths are its own. */
export type DoubtedRow = Pick<GradeSpec, 'goldPatch' | 'testPatch' | 'failToPass' | 'passToPass'>;

/** A report (`-rA`) more in the same lines decides nothing: images of some datasets add it, and patches of their agents show it. */
function isReportOption({ added, removed }: ChangedLines): boolean {
  const plain = (lines: readonly string[]) =>
    lines
      .map((line) => line.replaceAll(' -rA', ''))
      .sort()
      .join('\n');
  return added.length > 0 && plain(added) === plain(removed);
}

export function doubtfulPaths(spec: DoubtedRow, patch: string): PatchDoubt[] {
  const allowed = new Set([...patchedPaths(spec.goldPatch), ...patchedPaths(spec.testPatch)]);
  const paths = patchedPaths(patch).filter((path) => !allowed.has(path));
  const folders = supportFolders(spec);
  const { files: changed } = changedLines(patch);
  const setup = paths.filter((path) => {
    const lines = changed.get(path);
    return LOADED_UNASKED.test(path) && !(lines && isReportOption(lines));
  });
  const replaces = standsIn(spec);
  const about = (rule: string, says: string, found: readonly string[]) =>
    found.length > 0 && finding(rule, says, few(found));
  return compact([
    about(
      'touches_git_folder',
      'the patch writes into a .git folder, whose configuration names programs that git runs',
      paths.filter((path) => path.split('/').some((part) => part.toLowerCase() === '.git')),
    ),
    about(
      'touches_test_setup',
      'the patch changes files that the test runner loads by itself, and the gold patch does not',
      setup,
    ),
    about(
      'shadows_modules',
      'the patch brings modules that are loaded in the place of the standard library, the test runner or an installed package',
      paths.filter((path) => shadows(path)),
    ),
    about(
      'shadows_tests',
      "the patch brings a package or a compiled module that is loaded in the place of the row's own tests",
      paths.filter(replaces),
    ),
    about(
      'touches_test_support',
      "the patch changes code beside the row's tests that they may load, and the gold patch does not",
      paths.filter((path) => supports(path, folders) && !setup.includes(path)),
    ),
  ]);
}

// Doubts that the run of the tests raises, whatever they printed.

export type DoubtedRun = Pick<TestRun, 'omittedBytes' | 'scriptKept' | 'scriptEnded' | 'limitsMet'>;

export const runDoubts = ({ omittedBytes, scriptKept, scriptEnded, limitsMet }: DoubtedRun): PatchDoubt[] =>
  compact([
    omittedBytes > 0 &&
      finding('log_truncated', 'the middle of the log is missing', `${omittedBytes} bytes did not fit`),
    // Bash reads a script while it runs, so what the tests write into it decides what comes after them.
    !scriptKept &&
      finding('script_changed', 'the eval script was changed or removed while it ran', '/eval.sh'),
    !scriptEnded &&
      finding(
        'script_cut_off',
        'the eval script did not end by itself: something killed it while it ran',
        '/eval.sh',
      ),
    limitsMet !== '' && limitMet(limitsMet),
  ]);
