/** What Python itself would raise: a wrong type, a step of zero. Who runs something in Python's way says in which terms that is a mistake. */
export class PythonError extends Error {
  override readonly name = 'PythonError';
}
