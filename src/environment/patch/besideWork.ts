/**
 * Paths that an agent leaves for itself in the work tree (`.nanocoder/tasks.json`), named by its configuration: new files there are no part
 * of the patch. A star stands for any part of one name.
 */

/** Lines of info/exclude. */
export const excludeLines = (paths: readonly string[]): string =>
  paths.map((path) => `/${path.replace(/\/$/, '').replaceAll(/[\\?[ ]/g, '\\$&')}\n`).join('');

/** Whether a path is one of these, or below one. */
export function isBeside(paths: readonly string[], path: string): boolean {
  const names = path.split('/');
  return paths.some((one) => {
    const wanted = one.replace(/\/$/, '').split('/');
    return wanted.length <= names.length && wanted.every((pattern, at) => isName(pattern, names[at]!));
  });
}

function isName(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length)
    return false;
  let at = first.length;
  const end = name.length - last.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
