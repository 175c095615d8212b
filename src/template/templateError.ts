/** What is wrong with a template: at load (syntax, unknown names and filters) or while rendering (undefined values). */
export class TemplateError extends Error {
  override readonly name: string = 'TemplateError';
}

/** Jinja2's StrictUndefined: raised on any use of a value that is not there. */
export class UndefinedError extends TemplateError {
  override readonly name: string = 'UndefinedError';
}
