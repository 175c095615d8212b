/** A source that cannot be read; the message names it and says what was expected. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}
