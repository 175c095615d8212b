/** Names of others as one component of a path: it never leaves its folder and is never too long for one. */
import { sha256 } from '../sha256.ts';
import { replaceDangerous } from './inert.ts';

/** File systems end at 255 bytes. */
const LONGEST = 200;
/** The names of the harness's folders add a run's name and a suffix to the model's. */
const HARNESS_LONGEST = 112;

/** The part of a name that can be seen; its hash is of the whole. */
const beginningOf = (name: string): string => name.slice(0, 4 * LONGEST);

const ofName = (name: string): string => sha256(name).slice(0, 12);

/** Nothing but portable characters; "/" of a model's name becomes "__", as official tools write it. */
export function pathName(name: string): string {
  const safe = beginningOf(name)
    .replaceAll('/', '__')
    .replace(/[^A-Za-z0-9_.@+-]/g, '_');
  if (safe.length > LONGEST) return `${safe.slice(0, LONGEST - 13)}-${ofName(name)}`;
  return /^\.*$/.test(safe) ? `_${safe}` : safe;
}

/** The name as the official harness names a model's folder; only what would leave the place, hide or steer is replaced. */
export function harnessName(name: string): string {
  const flat = replaceDangerous(
    beginningOf(name)
      .replaceAll('/', '__')
      .replace(/[\t\n]/g, '_'),
    () => '_',
  );
  if (flat === '' || flat === '.' || flat === '..') return `_${flat}`;
  if (Buffer.byteLength(flat) <= HARNESS_LONGEST) return flat;
  const head = new TextDecoder().decode(Buffer.from(flat).subarray(0, HARNESS_LONGEST - 16));
  return `${head.replace(/\uFFFD+$/, '')}-${ofName(name)}`;
}
