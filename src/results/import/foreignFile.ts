/** A file that somebody else's program left: read only where it is one. */
import { readFileSync, statSync } from 'node:fs';
import { UserError } from '../../run/userError.ts';

/** What fits into one buffer and one text. */
const LARGEST = 500_000_000;

/** A pipe would be waited for, and a device never ends. A link is followed. */
export function readForeignFile(path: string): Buffer {
  const found = statSync(path);
  if (!found.isFile()) throw new UserError(`${path} is not a file`, { hint: 'take it out of the folder' });
  if (found.size > LARGEST)
    throw new UserError(`${path} has ${found.size} bytes, and files of up to ${LARGEST} are read`);
  return readFileSync(path);
}
