// `node scripts/packageNeeds.ts`, the last step of `npm run build`: package.json brings every package that a file of dist names, and every file that
// one names is there. Seen: a bundle asked `require.resolve` for a package of the development alone, so an installed swebatch knew no price.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';

const ROOT = join(import.meta.dirname, '..');

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode);

/** What a name stands for: the value that it was given, the part of a module that it was imported as, or something else. */
type Given =
  | { readonly value: Node; readonly scope: Scope; readonly key?: string }
  | { readonly from: string; readonly name: string };
interface Scope {
  readonly names: Map<string, Given[]>;
  readonly above?: Scope;
  readonly file: ParsedFile;
}
interface ParsedFile {
  readonly path: string;
  readonly text: string;
  readonly top: Scope;
  readonly exported: Map<string, string>;
  readonly scopes: Map<Node, Scope>;
  readonly program: Node;
}

/** A name in a file, as `require`, `import()` or a worker is given it; undefined: it is made in mid-run. */
interface Named {
  readonly name: string | undefined;
  /** file:line */
  readonly where: string;
  /** `import('x')`, `require(…)`: as it is written. */
  readonly form: string;
}

const isFunction = ({ type }: Node) => /Function(?:Declaration|Expression)$/.test(type);

/** The names of a pattern; of `{key: name}` with their key. */
function namesIn(pattern: Node, key?: string): { name: string; key?: string }[] {
  if (pattern.type === 'Identifier') return [{ name: String(pattern.name), ...(key && { key }) }];
  if (pattern.type === 'Property') {
    const { name, value } = pattern.key as { name?: string; value?: string };
    return namesIn(pattern.value as Node, name ?? value);
  }
  if (pattern.type === 'AssignmentPattern') return namesIn(pattern.left as Node, key);
  return childrenOf(pattern).flatMap((child) => namesIn(child));
}

/** Blocks are not told from their function: a name that is declared in one hides the same name above. */
function collect(node: Node, scope: Scope, file: Omit<ParsedFile, 'top'>): void {
  const declare = (pattern: Node, value?: Node) => {
    for (const { name, key } of namesIn(pattern)) {
      const given = scope.names.get(name) ?? [];
      scope.names.set(name, value ? [...given, { value, scope, ...(key && { key }) }] : given);
    }
  };
  let inner = scope;
  if (isFunction(node)) {
    if (node.type === 'FunctionDeclaration' && isNode(node.id)) declare(node.id);
    inner = { names: new Map(), above: scope, file: scope.file };
    for (const parameter of node.params as Node[])
      for (const { name } of namesIn(parameter)) inner.names.set(name, []);
  } else if (node.type === 'VariableDeclarator')
    declare(node.id as Node, (node.init as Node | null) ?? undefined);
  else if (node.type === 'ClassDeclaration' && isNode(node.id)) declare(node.id);
  else if (node.type === 'CatchClause' && isNode(node.param)) declare(node.param);
  else if (node.type === 'AssignmentExpression' && (node.left as Node).type === 'Identifier') {
    const name = String((node.left as Node).name);
    scopeOf(scope, name)
      ?.names.get(name)
      ?.push({ value: node.right as Node, scope });
  } else if (node.type === 'ImportDeclaration') {
    for (const one of node.specifiers as Node[]) {
      const { name = 'default', value } = (one.imported ?? {}) as { name?: string; value?: string };
      const part = one.type === 'ImportNamespaceSpecifier' ? '*' : (value ?? name);
      scope.names.set(String((one.local as Node).name), [
        { from: String((node.source as Node).value), name: part },
      ]);
    }
  } else if (node.type === 'ExportSpecifier') {
    const nameOf = ({ name, value }: Node) => String(name ?? value);
    file.exported.set(nameOf(node.exported as Node), nameOf(node.local as Node));
  }
  file.scopes.set(node, inner);
  for (const child of childrenOf(node)) collect(child, inner, file);
}

function scopeOf(scope: Scope | undefined, name: string): Scope | undefined {
  for (let at = scope; at; at = at.above) if (at.names.has(name)) return at;
  return undefined;
}

function parse(path: string, text: string): ParsedFile {
  const { program, errors } = parseSync(path, text, /\.d\.[cm]?ts$/.test(path) ? { lang: 'dts' } : {});
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const file = { path, text, exported: new Map(), scopes: new Map(), program: program as unknown as Node };
  const top = { names: new Map(), file: file as unknown as ParsedFile };
  Object.assign(file, { top });
  collect(file.program, top, file);
  return file as unknown as ParsedFile;
}

/** What an expression may be. */
type Reader<T> = (expression: Node, scope: Scope) => T[];

/** What an expression is: `createRequire`, or what resolves a name (`require`, `require.resolve`, `import.meta.resolve`) and from which file. */
type Kind = 'maker' | { readonly from: string };

/** Every name that these files give to `import`, `require` or a worker, in whatever form. */
export function namesOf(files: Readonly<Record<string, string>>): Named[] {
  const parsed = new Map(Object.entries(files).map(([path, text]) => [path, parse(path, text)]));

  const through = <T>(expression: Node, scope: Scope, of: (value: Node, scope: Scope) => T[]): T[] => {
    if (expression.type === 'ConditionalExpression')
      return [expression.consequent, expression.alternate].flatMap((one) => of(one as Node, scope));
    if (expression.type === 'LogicalExpression')
      return [expression.left, expression.right].flatMap((one) => of(one as Node, scope));
    if (expression.type === 'SequenceExpression')
      return of((expression.expressions as Node[]).at(-1)!, scope);
    if (/^(?:Parenthesized|TSAs|TSNonNull|Chain|Await)/.test(expression.type))
      return of((expression.expression ?? expression.argument) as Node, scope);
    return [];
  };
  const isMakerKey = (key: unknown) => key === 'createRequire';

  const seen = new Set<Node>();
  /** A value may be made of itself: `a = b ?? a`. */
  const once =
    <T>(of: (value: Node, scope: Scope) => T[]) =>
    (value: Node, scope: Scope): T[] => {
      if (seen.has(value)) return [];
      seen.add(value);
      const found = of(value, scope);
      seen.delete(value);
      return found;
    };
  const kindsOf: Reader<Kind> = once((expression, scope) => {
    const { path } = scope.file;
    if (expression.type === 'Identifier') return kindsOfName(String(expression.name), scope);
    if (expression.type === 'CallExpression') {
      if (!kindsOf(expression.callee as Node, scope).includes('maker')) return [];
      return [{ from: placesOf((expression.arguments as Node[])[0]!, scope)[0] ?? path }];
    }
    if (expression.type !== 'MemberExpression') return through(expression, scope, kindsOf);
    const { name, value } = expression.property as { name?: string; value?: unknown };
    const key = expression.computed ? value : name;
    if (isMakerKey(key)) return ['maker'];
    if (key !== 'resolve') return [];
    const object = expression.object as Node;
    if (object.type === 'MetaProperty') return [{ from: path }];
    return kindsOf(object, scope).filter((kind) => kind !== 'maker');
  });
  function kindsOfName(name: string, scope: Scope): Kind[] {
    const home = scopeOf(scope, name);
    if (!home) return name === 'require' ? [{ from: scope.file.path }] : [];
    return home.names.get(name)!.flatMap((given) => {
      if ('value' in given)
        return isMakerKey(given.key) ? ['maker' as const] : kindsOf(given.value, given.scope);
      if (isMakerKey(given.name)) return ['maker' as const];
      const source = parsed.get(join(dirname(home.file.path), given.from));
      const local = source?.exported.get(given.name);
      return source && local !== undefined ? kindsOfName(local, source.top) : [];
    });
  }

  const textsOf: Reader<string> = once((expression, scope) => {
    if (expression.type === 'Literal') return [String(expression.value)];
    if (expression.type === 'TemplateLiteral') {
      const [first, ...others] = expression.quasis as { value: { cooked: string } }[];
      return others.length === 0 ? [first!.value.cooked] : [];
    }
    if (expression.type === 'Identifier') {
      const name = String(expression.name);
      const given = scopeOf(scope, name)?.names.get(name) ?? [];
      return given.flatMap((one) => ('value' in one ? textsOf(one.value, one.scope) : []));
    }
    return through(expression, scope, textsOf);
  });
  /** Of `import.meta.url` and `new URL('./x', import.meta.url)`, below dist. */
  const placesOf: Reader<string> = once((expression, scope) => {
    if (expression.type === 'MemberExpression') {
      const object = expression.object as Node;
      return object.type === 'MetaProperty' ? [scope.file.path] : placesOf(object, scope);
    }
    const { name } = (expression.callee ?? {}) as { name?: string };
    if (expression.type !== 'NewExpression' || name !== 'URL') return through(expression, scope, placesOf);
    const [to, from] = expression.arguments as Node[];
    const start = from ? placesOf(from, scope) : [];
    return start.flatMap((one) => textsOf(to!, scope).map((text) => join(dirname(one), text)));
  });

  const found: Named[] = [];
  for (const file of parsed.values()) {
    const whereOf = (node: Node) => `${file.path}:${file.text.slice(0, node.start).split('\n').length}`;
    const add = (node: Node, names: readonly string[], from = file.path) => {
      const form = file.text.slice(node.start, node.start + 80).split('\n')[0]!;
      for (const name of names.length > 0 ? names : [undefined])
        found.push({
          name: name?.startsWith('.') ? `./${join(dirname(from), name)}` : name,
          where: whereOf(node),
          form,
        });
    };
    for (const [node, scope] of file.scopes) {
      const [first] = (node.arguments ?? []) as Node[];
      if (NAMING.test(node.type) && isNode(node.source)) {
        const isModule = /^pathToFileURL\(/.test(file.text.slice(node.source.start));
        if (!isModule) add(node, textsOf(node.source, scope));
      } else if (node.type === 'CallExpression') {
        const kind = kindsOf(node.callee as Node, scope).find((one) => one !== 'maker');
        if (kind && first) add(node, textsOf(first, scope), kind.from);
      } else if (node.type === 'NewExpression' && (node.callee as Node).name === 'Worker' && first) {
        const places = placesOf(first, scope).map((place) => `./${place}`);
        if (places.length > 0) add(node, places, '');
      } else {
        // What a worker is given as its text.
        for (const one of insideOf(textOf(node))) found.push({ ...one, where: whereOf(node) });
      }
    }
  }
  return found;
}
const NAMING = /^(?:Import|ExportNamed|ExportAll)Declaration$|^(?:TSImportType|ImportExpression)$/;

function textOf(node: Node): string {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  const parts = (node.type === 'TemplateLiteral' ? node.quasis : []) as { value: { cooked: string } }[];
  return parts.map(({ value }) => value.cooked).join('0');
}

function insideOf(text: string): Named[] {
  if (!/\b(?:require|import)\s*\(|\bfrom\s*['"]/.test(text)) return [];
  if (parseSync('text.mjs', text).errors.length > 0) return [];
  return namesOf({ 'text.mjs': text }).filter(({ name }) => name !== undefined);
}

/** Packages that load what their user names, which swebatch never does: loaders of templates, transports of the log, files that a configuration extends. */
const LOADERS = ['nunjucks', 'pino', 'yargs'];

interface Manifest {
  readonly dependencies?: object;
  readonly optionalDependencies?: object;
  readonly peerDependencies?: object;
}

/** A sentence for each name that an installed package would look for in vain. */
export function missingNames(
  named: readonly Named[],
  manifest: Manifest,
  isThere: (path: string) => boolean,
): string[] {
  const { dependencies, optionalDependencies, peerDependencies } = manifest;
  const brought = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  return named.flatMap(({ name, where, form }) => {
    if (name === undefined)
      return LOADERS.some((one) => where.startsWith(`${one}-`))
        ? []
        : [`${where} asks for a name that is made in mid-run: ${form}`];
    if (name.startsWith('./'))
      return isThere(name.slice(2)) ? [] : [`${where} names ${name}, which is not there`];
    if (isBuiltin(name) || brought.some((one) => name === one || name.startsWith(`${one}/`))) return [];
    return [`${where} names ${name}, which package.json does not bring: ${form}`];
  });
}

/** The files that are loaded when these are, at once or when they are needed. */
export function reachedFrom(entries: readonly string[], named: readonly Named[]): Set<string> {
  const reached = new Set(entries);
  for (const file of reached)
    for (const { name, where } of named)
      if (name?.startsWith('./') && where.startsWith(`${file}:`)) reached.add(name.slice(2));
  return reached;
}

/** The scripts of a folder and the declarations beside them. */
export const scriptsOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(?:[cm]?js|d\.[cm]?ts)$/.test(path))
      .map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  );

if (import.meta.main) {
  const dist = join(ROOT, 'dist');
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  const missing = missingNames(namesOf(scriptsOf(dist)), manifest, (path) => existsSync(join(dist, path)));
  for (const line of missing) process.stderr.write(`build: ${line}\n`);
  if (missing.length > 0) process.exitCode = 1;
}
