/** A problem that the caller can act on: wrong input, a missing file, a run that does not exist. Everything else is a defect or a fault. */
export class UserError extends Error {
  override readonly name = 'UserError';
  /** The next thing to do. */
  readonly hint: string | undefined;
  constructor(message: string, more: { hint?: string } = {}) {
    super(message);
    this.hint = more.hint;
  }
}
