// Two folders, file by file, after what can never be equal was replaced.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { dumpDatabase, RENAMED_KEYS, toSchemaOf } from './dumpDatabase.ts';

interface Compared {
  readonly files: number;
  /** One sentence for each file that differs. */
  readonly differences: readonly string[];
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/-(?:wal|shm)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

const DATABASE = /\.db(?:\.backup-[^/]*)?$/;

/** The data that a page carries: gzip in base64. */
const PACKED = /H4sI[\w+/=]+/g;
const unpacked = (base64: string) => gunzipSync(Buffer.from(base64, 'base64')).toString('latin1');

/** A file as text: a database as its schema and rows, gzip unpacked. */
function textOf(path: string): string {
  if (DATABASE.test(path)) return dumpDatabase(path);
  const bytes = readFileSync(path);
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const text = (packed ? gunzipSync(bytes) : bytes).toString('latin1');
  return path.endsWith('.html') ? text.replace(PACKED, unpacked) : text;
}

const WIDTH = 160;

/** The first line that differs, as both have it, from a little before the place. */
function firstDifference(old: string, now: string): string {
  const [before, after] = [old.split('\n'), now.split('\n')];
  const at = before.findIndex((line, n) => line !== after[n]);
  const line = at < 0 ? before.length : at;
  const [a, b] = [before[line] ?? '(no line)', after[line] ?? '(no line)'];
  let column = 0;
  while (column < a.length && a[column] === b[column]) column += 1;
  const from = Math.max(0, column - 40);
  return `line ${line + 1}: ${JSON.stringify(a.slice(from, from + WIDTH))} became ${JSON.stringify(b.slice(from, from + WIDTH))}`;
}

/** Rows and events of a run come in the order in which its parallel parts happened to end. */
function comparable(path: string, origin: Origin): string {
  const text = normalised(textOf(path), origin);
  const unordered = origin === 'own run' && (DATABASE.test(path) || path.endsWith('run.log'));
  return unordered ? text.split('\n').sort().join('\n') : text;
}

/** Records of another schema are put into that of `checkout` first. */
export function compareFolders(old: string, now: string, origin: Origin, checkout: string): Compared {
  for (const file of filesOf(old)) if (DATABASE.test(file)) toSchemaOf(checkout, join(old, file));
  const names = (folder: string) =>
    new Map(
      filesOf(folder)
        .filter((file) => !isSkipped(file, origin))
        .map((file) => [normalised(file, origin), file]),
    );
  const [before, after] = [names(old), names(now)];
  const all = [...new Set([...before.keys(), ...after.keys()])].sort();
  const differences = all.flatMap((file) => {
    const [first, second] = [before.get(file), after.get(file)];
    if (!second) return [`${file}: only the old version writes it`];
    if (!first) return [`${file}: only the new version writes it`];
    const [a, b] = [join(old, first), join(now, second)].map((path) => comparable(path, origin));
    return a === b ? [] : [`${file}: ${firstDifference(a!, b!)}`];
  });
  return { files: all.length, differences };
}

// What two runs of one version never have in common. Everything else is compared byte for byte.

/** Both versions read one record; each imported its own, so moments differ; each ran its own, so durations differ as well. */
export type Origin = 'one record' | 'own import' | 'own run';
const ORIGINS: readonly Origin[] = ['one record', 'own import', 'own run'];

interface Rule {
  /** For the reader of the table. */
  readonly what: string;
  /** From which origin on. */
  readonly from: Origin;
  readonly pattern: RegExp;
  readonly by: string;
}

export const RULES: readonly Rule[] = [
  {
    what: 'the commit and the version of swebatch itself',
    from: 'one record',
    pattern:
      /(\\*"?(?:commit|swebatch_version|swebatch_commit|program_version)\\*"?: ?)(\\*"[^"\\]*\\*"|null)/g,
    by: '$1<version>',
  },
  {
    what: 'uncommitted changes of the checkout',
    from: 'one record',
    pattern: /(\\*"(?:dirty|diff_sha256)\\*": ?)(?:true|false|null|\\*"[0-9a-f]{64}\\*")/g,
    by: '$1<checkout>',
  },
  {
    what: 'what has come since the first version: model.drop_params, and what caching saved',
    from: 'one record',
    pattern:
      /\n? *\\*"drop_params\\*": ?(?:true|false),|\n *"cache_saved": (?:null|\{[^}]*\}),|\| saved by cache \|.*\n|<tr><th scope="row">saved by cache<\/th><td>[^<]*<\/td><\/tr>/g,
    by: '',
  },
  {
    what: 'what has come since: dollars beside nano-dollars',
    from: 'one record',
    pattern: /,\n *"\w*usd": (?:null|[\d.e+-]+)/g,
    by: '',
  },
  ...RENAMED_KEYS.map(
    ([pattern, by]): Rule => ({
      what: `a key that was renamed since: ${by}`,
      from: 'one record',
      pattern,
      by,
    }),
  ),
  {
    what: 'when a baseline was set and a page was made',
    from: 'one record',
    pattern: /(?<="?(?:set_at|madeAt)\\*": ?\\*"|^default\t\w+\t)[^"\n]+/gm,
    by: '<moment>',
  },
  {
    what: 'own imports and runs: the moment of anything',
    from: 'own import',
    pattern: /\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(?:[.,-]\d+)?Z?/g,
    by: '<moment>',
  },
  {
    what: 'own runs: seconds since 1970',
    from: 'own run',
    pattern: /(?<=\\*"timestamp\\*":? ?)\d{10}\.?\d*/g,
    by: '<moment>',
  },
  {
    what: 'own runs: how long anything took: keys that end in _ms, _s or Ms, and what programs say of themselves',
    from: 'own run',
    pattern:
      /(?<=\b\w+(?:_m?s|Ms)\\*"?:? ?)-?\d[\d.]*|(?<=\bin )\d+\.\d+ ?s\b|(?<=runtime: )[\d.]+|0m\d+\.\d+s/g,
    by: '<duration>',
  },
  {
    what: 'own runs: the length of an output that says how long something took',
    from: 'own run',
    pattern: /(?<=^commands \{.*<duration>.*"total_bytes":)\d+/gm,
    by: '<length>',
  },
  {
    what: 'own runs: the names of containers',
    from: 'own run',
    pattern: /(?<=ontainer (?:for \S+ (?:created|started): )?)[0-9a-f]{61,64}|(?<="container_id":")[^"]+/g,
    by: '<container>',
  },
  {
    what: 'own runs: addresses in memory, and how much disk is free',
    from: 'own run',
    pattern: /\b0x7f[0-9a-f]{10}\b|(?<="free_bytes": )\d+/g,
    by: '<number>',
  },
  {
    what: 'own runs: in which order images were ready, and how steps and gradings fell between each other, so their numbers and the order of rows',
    from: 'own run',
    pattern:
      /(?<="(?:id|attempt_id|final_attempt_id|evaluation_id|message_id|slot)":|\\"(?:trialId|attemptId|slot)\\+":|^(?:events|phases) \{(?:"attempt_id":(?:\d+|<number>),)?"seq":)\d+/gm,
    by: '<number>',
  },
  {
    what: 'own runs: whether a container was ready before its slot was, so how its start is divided into phases',
    from: 'own run',
    pattern: /^\w*phases \{.*"name":"(?:pull|seal|start|verify)".*\n/gm,
    by: '',
  },
  {
    what: 'own runs: how long trials are expected to take, how many calls were out at a moment, and what dead processes of others had left',
    from: 'own run',
    pattern:
      /(?<=\\*"(?:inFlight|waiting)\\*":)\d+|(?<="expectedS":)\[\[[^\n]*?\]\]|^note: removed \d+ container.*\n/gm,
    by: '',
  },
  {
    what: 'own runs: where a replay met another duration in the output of a test',
    from: 'own run',
    pattern:
      /(?<=environment answered differently than in the recording: )differs at character \d+.*?(?=\\"\}"\}|$)/gm,
    by: '<durations>',
  },
];

/** Reports rank trials and phases by time; those of one record are compared. */
const isSkipped = (path: string, origin: Origin): boolean =>
  origin === 'own run' && /\/summary\.(?:md|html|json)$/.test(path);

function normalised(text: string, origin: Origin): string {
  const rules = RULES.filter((rule) => ORIGINS.indexOf(origin) >= ORIGINS.indexOf(rule.from));
  return rules.reduce((result, { pattern, by }) => result.replace(pattern, by), text);
}
