/** The syntax tree of a template, as our own closed union. Syntax that nunjucks parses and Jinja2 does not know is refused before it gets here. */

export type Expr =
  | { readonly kind: 'literal'; readonly value: unknown }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list'; readonly items: readonly Expr[] }
  | { readonly kind: 'dict'; readonly pairs: readonly (readonly [Expr, Expr])[] }
  | { readonly kind: 'member'; readonly target: Expr; readonly key: Expr }
  | {
      readonly kind: 'slice';
      readonly target: Expr;
      readonly start: Expr | null;
      readonly stop: Expr | null;
      readonly step: Expr | null;
    }
  | { readonly kind: 'call'; readonly callee: Expr; readonly args: CallArgs }
  | { readonly kind: 'filter'; readonly name: string; readonly target: Expr; readonly args: CallArgs }
  | { readonly kind: 'test'; readonly name: string; readonly target: Expr; readonly args: CallArgs }
  | { readonly kind: 'not' | 'negative' | 'positive'; readonly target: Expr }
  | { readonly kind: 'and' | 'or'; readonly left: Expr; readonly right: Expr }
  | { readonly kind: 'binary'; readonly operator: BinaryOperator; readonly left: Expr; readonly right: Expr }
  | {
      readonly kind: 'compare';
      readonly first: Expr;
      readonly rest: readonly { readonly operator: ComparisonOperator; readonly value: Expr }[];
    }
  | { readonly kind: 'choice'; readonly test: Expr; readonly yes: Expr; readonly no: Expr | null }
  | { readonly kind: 'capture'; readonly body: readonly Statement[] };

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**' | '~';
export type ComparisonOperator = '==' | '!=' | '<' | '>' | '<=' | '>=' | 'in';

export interface CallArgs {
  readonly positional: readonly Expr[];
  readonly named: readonly (readonly [string, Expr])[];
}

export type Statement =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'output'; readonly value: Expr }
  | {
      readonly kind: 'if';
      readonly test: Expr;
      readonly yes: readonly Statement[];
      readonly no: readonly Statement[];
    }
  | {
      readonly kind: 'for';
      readonly targets: readonly string[];
      readonly over: Expr;
      readonly only: Expr | null;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | { readonly kind: 'set'; readonly targets: readonly string[]; readonly value: Expr };

/** What is wrong with a template: at load (syntax, unknown names and filters) or while rendering (undefined values). */
export class TemplateError extends Error {
  override readonly name: string = 'TemplateError';
}

/** Jinja2's StrictUndefined: raised on any use of a value that is not there. */
export class UndefinedError extends TemplateError {
  override readonly name: string = 'UndefinedError';
}
