/** Modules that run tests in Python, or are loaded by those that do. */
export const TEST_RUNNERS: ReadonlySet<string> = new Set(
  'pytest _pytest pluggy iniconfig nose nose2 tox hypothesis'.split(' '),
);
