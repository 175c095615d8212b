/** Looks over a template when the config loads, so that a typo stops the run before anything is started or paid. */

import { closest } from '../base/text/closest.ts';
import type { CallArgs, Expr, Statement } from './ast.ts';
import { FILTERS, METHOD_NAMES, TESTS } from './filters.ts';
import { parseTemplate } from './parse.ts';

interface Found {
  /** Names used before anything in the template set them. */
  readonly free: Set<string>;
  /** Names that the template asks about with `is defined` or `default`: they may be missing. */
  readonly asked: Set<string>;
  readonly problems: string[];
}

/** Every request of an agent begins with one; longer than this is a mistake. */
const LONGEST = 1_000_000;

/** One sentence for each problem; empty when the template can be rendered with these names. */
export function checkTemplate(source: string, availableNames: Iterable<string>): string[] {
  if (source.length > LONGEST) return [`it has more than ${LONGEST} characters`];
  let body: Statement[];
  try {
    body = parseTemplate(source);
  } catch (error) {
    return [(error as Error).message];
  }
  const found: Found = { free: new Set(), asked: new Set(), problems: [] };
  visitAll(body, new Set(), found);
  const available = new Set(availableNames);
  const unknown = [...found.free].filter((name) => !available.has(name) && !found.asked.has(name));
  return [
    ...new Set(found.problems),
    ...unknown.map((name) => `'${name}' is not a name this template can use${suggestion(name, available)}`),
  ];
}

function suggestion(name: string, available: ReadonlySet<string>): string {
  const close = closest(name, available);
  return close ? `; did you mean '${close}'?` : '';
}

function visitAll(body: readonly Statement[], bound: Set<string>, found: Found): void {
  for (const node of body) visit(node, bound, found);
}

function visit(node: Statement, bound: Set<string>, found: Found): void {
  if (node.kind === 'output') look(node.value, bound, found);
  if (node.kind === 'if') {
    look(node.test, bound, found);
    visitAll(node.yes, bound, found);
    visitAll(node.no, bound, found);
  }
  if (node.kind === 'set') {
    look(node.value, bound, found);
    for (const name of node.targets) bound.add(name);
  }
  if (node.kind === 'for') {
    look(node.over, bound, found);
    const inner = new Set([...bound, ...node.targets, 'loop']);
    if (node.only) look(node.only, inner, found);
    visitAll(node.body, inner, found);
    visitAll(node.otherwise, new Set(bound), found);
  }
}

function look(node: Expr, bound: Set<string>, found: Found): void {
  if (node.kind === 'name' && !bound.has(node.name)) found.free.add(node.name);
  if (node.kind === 'capture') visitAll(node.body, bound, found);
  if (node.kind === 'filter') {
    if (!Object.hasOwn(FILTERS, node.name)) found.problems.push(`there is no filter '${node.name}'`);
    if (node.name === 'default' || node.name === 'd') ask(node.target, found);
  }
  if (node.kind === 'test') {
    if (!Object.hasOwn(TESTS, node.name)) found.problems.push(`there is no test '${node.name}'`);
    if (node.name === 'defined' || node.name === 'undefined') ask(node.target, found);
  }
  if (node.kind === 'call') callee(node.callee, found);
  for (const child of children(node)) look(child, bound, found);
}

function children(node: Expr): readonly Expr[] {
  const ofArgs = (args: CallArgs): Expr[] => [...args.positional, ...args.named.map(([, value]) => value)];
  switch (node.kind) {
    case 'literal':
    case 'name':
    case 'capture':
      return [];
    case 'list':
      return node.items;
    case 'dict':
      return node.pairs.flat();
    case 'member':
      return [node.target, node.key];
    case 'slice':
      return [node.target, node.start, node.stop, node.step].filter((part) => part !== null);
    case 'call':
      return [...(isRange(node.callee) ? [] : [node.callee]), ...ofArgs(node.args)];
    case 'filter':
    case 'test':
      return [node.target, ...ofArgs(node.args)];
    case 'not':
    case 'negative':
    case 'positive':
      return [node.target];
    case 'and':
    case 'or':
    case 'binary':
      return [node.left, node.right];
    case 'compare':
      return [node.first, ...node.rest.map((part) => part.value)];
    case 'choice':
      return node.no ? [node.test, node.yes, node.no] : [node.test, node.yes];
  }
}

function ask(node: Expr, found: Found): void {
  if (node.kind === 'name') found.asked.add(node.name);
}

const isRange = (node: Expr): boolean => node.kind === 'name' && node.name === 'range';

function callee(node: Expr, found: Found): void {
  if (isRange(node)) return;
  if (node.kind !== 'member' || node.key.kind !== 'literal')
    found.problems.push(
      node.kind === 'name' ? `'${node.name}' cannot be called` : 'only methods can be called',
    );
  else if (!METHOD_NAMES.has(String(node.key.value)))
    found.problems.push(`there is no method '${node.key.value}' to call`);
}
