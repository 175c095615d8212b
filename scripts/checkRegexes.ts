/**
 * Refuses regular expressions of src/ that can take more than linear time, and those made in mid-run, which nobody can check beforehand.
 * What was once proven linear is kept in regexes/linear.txt, so that only new ones cost time; `--write` adds them. What may stay although
 * it is not linear stands in regexes/accepted.json with the reason.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkSync } from 'recheck';
import { parseSync, Visitor } from 'vite';

const ROOT = join(import.meta.dirname, '..');
const LINEAR = join(import.meta.dirname, 'regexes', 'linear.txt');
const ACCEPTED = join(import.meta.dirname, 'regexes', 'accepted.json');
const TIMEOUT_MS = 10_000;

interface Span {
  readonly start: number;
  readonly end: number;
}
export interface FoundRegex {
  /** file:line */
  readonly where: string;
  readonly source: string;
  readonly flags: string;
}
interface Accepted {
  readonly file: string;
  /** As it is written between the slashes, or the argument of `new RegExp`; absent: every one of the file. */
  readonly regex?: string;
  readonly reason: string;
}

/** Literals of a source text, and the arguments of `new RegExp` inside functions. */
export function regexesOf(file: string, text: string): { literals: FoundRegex[]; made: FoundRegex[] } {
  const literals: FoundRegex[] = [];
  const made: FoundRegex[] = [];
  const at = (start: number) => `${file}:${text.slice(0, start).split('\n').length}`;
  let depth = 0;
  const enter = () => void depth++;
  const leave = () => void depth--;
  const making = (node: { callee: { start: number; end: number }; start: number; arguments: Span[] }) => {
    const first = node.arguments[0];
    if (depth === 0 || !first || text.slice(node.callee.start, node.callee.end) !== 'RegExp') return;
    made.push({ where: at(node.start), source: text.slice(first.start, first.end), flags: '' });
  };
  new Visitor({
    // biome-ignore lint/correctness/noComponentHookFactories: the name of a node of the syntax tree, no component
    Literal: (node) => {
      if ('regex' in node && node.regex)
        literals.push({ where: at(node.start), source: node.regex.pattern, flags: node.regex.flags });
    },
    NewExpression: making,
    CallExpression: making,
    FunctionDeclaration: enter,
    'FunctionDeclaration:exit': leave,
    FunctionExpression: enter,
    'FunctionExpression:exit': leave,
    ArrowFunctionExpression: enter,
    'ArrowFunctionExpression:exit': leave,
  }).visit(parseSync(file, text).program);
  return { literals, made };
}

/** Expressions that modules put together when they are loaded; literals do not come through the constructor. */
async function regexesOfModules(files: readonly string[]): Promise<FoundRegex[]> {
  const found: FoundRegex[] = [];
  const Original = globalThis.RegExp;
  const frame = new Original(`${ROOT}/(src/[^:)]*:\\d+)`);
  globalThis.RegExp = new Proxy(Original, {
    construct(target, args, newTarget) {
      const regex = Reflect.construct(target, args, newTarget) as RegExp;
      // The first frame below this one is who made it.
      const where = frame.exec(new Error().stack?.split('\n')[2] ?? '')?.[1];
      if (where) found.push({ where, source: regex.source, flags: regex.flags });
      return regex;
    },
  });
  for (const file of files) await import(pathToFileURL(join(ROOT, file)).href);
  globalThis.RegExp = Original;
  return found;
}

const keyOf = ({ source, flags }: FoundRegex): string =>
  createHash('sha256').update(`/${source}/${flags}`).digest('hex').slice(0, 20);

// The variant in JavaScript: the others are programs, which not every machine can start.
process.env.RECHECK_BACKEND = 'pure';

/** Why it is not linear, or null. */
export function superLinear({ source, flags }: Pick<FoundRegex, 'source' | 'flags'>): string | null {
  const found = checkSync(source, flags, { timeout: TIMEOUT_MS });
  if (found.status === 'safe') return null;
  if (found.status === 'unknown') return 'cannot be proven linear';
  return `${found.complexity.summary}: ${found.attack.pattern}`;
}

async function main(write: boolean): Promise<number> {
  const files = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).sort();
  const texts = files.map((file) => regexesOf(file, readFileSync(join(ROOT, file), 'utf8')));
  const loaded = files.filter((file) => !/^src\/cli\/bin\.ts$|^src\/viewer\/page\/|\.tsx$/.test(file));
  const accepted = JSON.parse(readFileSync(ACCEPTED, 'utf8')) as Accepted[];
  const used = new Set<Accepted>();
  const isAccepted = ({ where, source }: FoundRegex): boolean => {
    const entry = accepted.find(
      ({ file, regex }) => where.startsWith(`${file}:`) && (regex === undefined || regex === source),
    );
    if (entry) used.add(entry);
    return entry !== undefined;
  };
  const linear = new Set(readFileSync(LINEAR, 'utf8').split('\n').filter(Boolean));
  const seen = new Set<string>();
  const problems: string[] = [];
  for (const regex of [...texts.flatMap(({ literals }) => literals), ...(await regexesOfModules(loaded))]) {
    const key = keyOf(regex);
    if (isAccepted(regex)) continue;
    seen.add(key);
    if (linear.has(key)) continue;
    const why = superLinear(regex);
    if (why === null) linear.add(key);
    else problems.push(`${regex.where}: /${regex.source}/${regex.flags} is not linear: ${why}`);
  }
  for (const regex of texts.flatMap(({ made }) => made))
    if (!isAccepted(regex))
      problems.push(`${regex.where}: new RegExp(${regex.source}) in a function cannot be checked`);
  for (const entry of accepted)
    if (!used.has(entry))
      problems.push(`accepted.json: ${entry.file} has no ${entry.regex ?? 'such expression'} any more`);
  for (const problem of problems) console.error(problem);
  if (write)
    writeFileSync(
      LINEAR,
      `${[...linear]
        .filter((key) => seen.has(key))
        .sort()
        .join('\n')}\n`,
    );
  return problems.length === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main(process.argv.includes('--write'));
