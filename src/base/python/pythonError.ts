/** An error that Python itself would raise: a wrong type, a step of zero. The caller turns it into an error of its own. */
export class PythonError extends Error {
  override readonly name = 'PythonError';
}
