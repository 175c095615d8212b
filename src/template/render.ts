/** The door of the folder: render a template as Jinja2 with StrictUndefined would. Templates are compiled once. */
import type { Statement } from './ast.ts';
import { run, type Vars } from './evaluateTree.ts';
import { parseTemplate } from './parse.ts';

export type { Vars } from './evaluateTree.ts';
export type Template = (vars: Vars) => string;

const compiled = new Map<string, Template>();
/** A run has a handful of templates; a program that makes them up should not grow without end. */
const CACHE_LIMIT = 500;

/** Throws TemplateError when the text is not a template. */
export function compileTemplate(source: string): Template {
  const known = compiled.get(source);
  if (known) return known;
  const body: readonly Statement[] = parseTemplate(source);
  const template: Template = (vars) => run(body, vars);
  if (compiled.size >= CACHE_LIMIT) compiled.clear();
  compiled.set(source, template);
  return template;
}

/** Throws UndefinedError where the template uses what `vars` does not have. `vars` are values only, never template text. */
export function render(source: string, vars: Vars): string {
  return compileTemplate(source)(vars);
}
