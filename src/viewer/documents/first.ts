/** The documents that the page of an address asks for first, in one answer: its HTML asks for it before the script is read. */
import type { AttemptDocument } from './attemptDocuments.ts';
import type { Documents, RunList } from './resources.ts';

/** Lines: a path, then its document, and so on. No document has a line break. */
export function firstDocuments(documents: Documents, address: string): string {
  const lines: string[] = [];
  const take = <T>(path: string): T | undefined => {
    const document = documents.read(path);
    if (document !== undefined) lines.push(path, JSON.stringify(document));
    return document as T | undefined;
  };
  const list = take<RunList>('runs');
  const [kind, name = '', part] = addressParts(address);
  const run = kind === 'run' ? list?.runs.find((one) => one.name === name) : undefined;
  if (run && part === 'instances') take(`runs/${run.id}/trials/0`);
  else if (run) for (const path of [`runs/${run.id}`, `runs/${run.id}/map/0`]) take(path);
  else if (kind === 'attempt' && take<AttemptDocument>(`attempts/${name}`))
    take(`attempts/${name}/messages/0`);
  return lines.join('\n');
}

/** `#/run/night%201?by=repo` is run, night 1. */
export const addressParts = (hash: string): string[] =>
  hash
    .replace(/^#\/?/, '')
    .split('?', 1)[0]!
    .split('/')
    .filter((part) => part !== '')
    .map(decoded);

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // An address that somebody cut or typed is taken as it is (observed: "%ff" in tests/viewer/server.test.ts).
    return part;
  }
}
