// A file of its own: the command line knows this error, and loads no zod for it.
/** The file is no longer the one whose rows were selected. */
export class DatasetChangedError extends Error {
  override readonly name = 'DatasetChangedError';
  constructor(path: string) {
    super(`${path} was changed while it was in use; begin again when nothing writes it any more`);
  }
}
