/** The kind of a step and the files that it names, by its command. Two trajectories are aligned by this, not by their words. */

type StepKind = 'submit' | 'test' | 'edit' | 'search' | 'read' | 'run' | 'talk';

export interface StepFacts {
  readonly kind: StepKind;
  /** Paths without the folder of the repository, in their order. */
  readonly files: readonly string[];
  /** The beginning of the command; empty where the step only talks. */
  readonly command: string;
  /** Of the whole command: two that begin alike may end otherwise. */
  readonly digest: number;
}

export interface StepAction {
  /** The name of the tool; "bash" for a shell. */
  readonly name: string;
  readonly text: string;
}

const READ_AT_MOST = 6_000;
const SHOWN = 300;
const MOST_FILES = 6;

const EXTENSIONS = new Set(
  (
    'py pyx pyi js jsx ts tsx mjs cjs java kt go rs c h cc cpp hpp rb php sh sql html css scss xml ' +
    'json toml ini cfg yml yaml txt md rst ipynb patch diff lock tex csv'
  ).split(' '),
);

const SUBMITS = ['COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT', 'MINI_SWE_AGENT_FINAL_OUTPUT'];
const TESTS =
  /\b(?:pytest|runtests\.py|unittest|tox|nose2?|bin\/test|npm (?:run )?test|go test|cargo test|jest|mocha|make test|phpunit|rspec|ctest)\b/;
const EDITS =
  /\bsed -i|\bpatch -p|\bgit apply\b|\bapply_patch\b|\btee |\bwrite_text\(|, ?['"]w['"]\)|\bgit checkout --|\bgit stash\b|\brm /;
const SEARCHES = new Set(['grep', 'rg', 'find', 'ag', 'ack', 'ls', 'tree', 'fd', 'locate', 'which']);
const READS = new Set(['cat', 'sed', 'head', 'tail', 'nl', 'less', 'more', 'awk', 'wc', 'stat']);
const GIT_SEARCHES = new Set(['grep', 'log', 'branch', 'status', 'blame']);

/** `cd /testbed && ` says where, not what. */
function withoutPlace(command: string): string {
  let left = command.trimStart();
  while (left.startsWith('cd ')) {
    const end = left.indexOf('&&');
    const line = left.indexOf('\n');
    if (end < 0 || (line >= 0 && line < end)) return left;
    left = left.slice(end + 2).trimStart();
  }
  return left;
}

/** A redirection into a file, other than of errors or into nothing. */
function writes(command: string): boolean {
  for (let at = command.indexOf('>'); at >= 0; at = command.indexOf('>', at + 1)) {
    const before = command[at - 1] ?? ' ';
    const after = command.slice(at + 1, at + 14).trimStart();
    if ('0123456789&-=<'.includes(before) || after.startsWith('&') || after.startsWith('=')) continue;
    if (/^>? ?[\w./"'$~-]/.test(after) && !after.replace('>', '').trimStart().startsWith('/dev/null'))
      return true;
  }
  return false;
}

function kindOfCommand(command: string): StepKind {
  const own = withoutPlace(command);
  if (SUBMITS.some((word) => own.includes(word))) return 'submit';
  if (TESTS.test(own)) return 'test';
  const [first = '', second = ''] = own.split(/\s+/, 2);
  // The first line says what a script is for; a `>` deep in a program compares.
  const head = own.split('\n', 1)[0]!;
  if (EDITS.test(own) || writes(head)) return 'edit';
  if (SEARCHES.has(first) || (first === 'git' && GIT_SEARCHES.has(second))) return 'search';
  if (READS.has(first) || first === 'git') return 'read';
  return 'run';
}

const TOOLS: readonly [RegExp, StepKind][] = [
  [/submit|finish|final/i, 'submit'],
  [/edit|write|replace|patch|insert|create/i, 'edit'],
  [/grep|glob|search|find|list|ls$/i, 'search'],
  [/read|view|open|cat|fetch/i, 'read'],
];
const SHELLS = new Set([
  '',
  ...'bash shell sh exec local_shell run_shell_command execute exec_command'.split(' '),
]);

function kindOfAction({ name, text }: StepAction): StepKind {
  if (SHELLS.has(name.toLowerCase())) return kindOfCommand(text);
  return TOOLS.find(([pattern]) => pattern.test(name))?.[1] ?? kindOfCommand(text);
}

function isFile(token: string): boolean {
  const dot = token.lastIndexOf('.');
  return (
    dot > 0 &&
    dot < token.length - 1 &&
    token.length < 200 &&
    EXTENSIONS.has(token.slice(dot + 1).toLowerCase())
  );
}

const AROUND = ['/testbed/', '/workspace/', '/repo/', '/app/', './', 'a/', 'b/'];

function bare(path: string): string {
  const prefix = AROUND.find((one) => path.startsWith(one));
  return prefix === undefined ? path : path.slice(prefix.length);
}

/** The files that a command names. */
export function filesIn(text: string): string[] {
  const files = new Set<string>();
  for (const token of text.slice(0, READ_AT_MOST).split(/[^\w./+-]/)) {
    if (isFile(token)) files.add(bare(token));
    if (files.size >= MOST_FILES) break;
  }
  return [...files];
}

const RANK: readonly StepKind[] = ['submit', 'edit', 'test', 'run', 'read', 'search', 'talk'];

/** Of several actions in one step the one that changes most says its kind. */
export function stepFacts(actions: readonly StepAction[]): StepFacts {
  const cut = actions.map(({ name, text }) => ({ name, text: text.slice(0, READ_AT_MOST) }));
  const kinds = cut.map(kindOfAction);
  const kind = RANK.find((one) => kinds.includes(one)) ?? 'talk';
  const files = [...new Set(cut.flatMap(({ text }) => filesIn(text)))].slice(0, MOST_FILES);
  const command = cut
    .map(({ name, text }) => (SHELLS.has(name.toLowerCase()) ? text : `${name} ${text}`))
    .join(' ; ');
  const own = withoutPlace(command).trim();
  return { kind, files, command: own.slice(0, SHOWN), digest: digestOf(own) };
}

/** Commands that say "no" with exit code 1: a search without a hit and two files that differ are answers. */
const ANSWER_BY_CODE = new Set('grep egrep fgrep zgrep rg ag ack diff cmp test [ [[ which pgrep'.split(' '));
const BEFORE_A_COMMAND = /^(?:time|sudo|nice|timeout|env|command|!|\d+[smh]?|-[a-z]+|\w+=\S*)$/;

/** Whether exit code 1 of this command says that something is not there, and not that something failed. */
export function answersByCode(command: string): boolean {
  const words = lastCommandOf(command.trim().slice(0, READ_AT_MOST)).trim().split(/\s+/);
  const at = words.findIndex((word) => !BEFORE_A_COMMAND.test(word));
  const name = (words[at] ?? '').split('/').at(-1)!;
  if (name !== 'git') return ANSWER_BY_CODE.has(name);
  const rest = words.slice(at + 1);
  return (
    rest.includes('grep') ||
    (rest.includes('diff') && rest.some((word) => /^--(quiet|exit-code|no-index)$/.test(word)))
  );
}

/** Behind the last `|`, `;`, `&` or line break that stands in no quotes. */
function lastCommandOf(command: string): string {
  let from = 0;
  let quote = '';
  for (let at = 0; at < command.length; at += 1) {
    const sign = command[at]!;
    if (sign === '\\' && quote !== "'") at += 1;
    else if (quote !== '') quote = sign === quote ? '' : quote;
    else if (sign === '"' || sign === "'") quote = sign;
    else if ('|;&\n'.includes(sign) && command[at - 1] !== '>' && command[at + 1] !== '>') from = at + 1;
  }
  return command.slice(from);
}

/** FNV-1a: it only tells two texts apart. */
function digestOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Where a reply speaks and where it acts. */

interface Part {
  kind: 'text' | 'code';
  text: string;
  /** The word behind the fence. */
  language?: string;
}

const OPENS = /^```[\w-]*[ \t]*$/;
const CLOSES = /^```[ \t]*\r?$/;

/** Splits a reply at its fenced blocks; what is inside a fence is an action or an example of one. */
export function parts(content: string): Part[] {
  const found: Part[] = [];
  let at = 0;
  let opened: { fence: number; code: number; language: string } | null = null;
  for (let from = 0; from < content.length; ) {
    const end = content.indexOf('\n', from);
    const line = content.slice(from, end < 0 ? undefined : end);
    if (opened && CLOSES.test(line)) {
      if (opened.fence > at) found.push({ kind: 'text', text: content.slice(at, opened.fence) });
      found.push({
        kind: 'code',
        text: content.slice(opened.code, from).replace(/\n$/, ''),
        language: opened.language,
      });
      at = from + line.length - (line.endsWith('\r') ? 1 : 0);
      opened = null;
    } else if (!opened && end >= 0 && OPENS.test(line))
      opened = { fence: from, code: end + 1, language: line.slice(3).trim() };
    if (end < 0) break;
    from = end + 1;
  }
  if (at < content.length) found.push({ kind: 'text', text: content.slice(at) });
  return found.filter((part) => part.text.trim() !== '');
}
