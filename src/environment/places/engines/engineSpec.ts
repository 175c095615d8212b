/** An engine as people name it: in `environment.hosts`, in a line of the file of engines, in `swebatch engines add`. */
import { z } from 'zod';
import { errorText } from '../../../base/text/errorText.ts';

export const engineSpecSchema = z.strictObject({
  host: z.string().min(1).regex(/^\S+$/, 'has spaces in it'),
  slots: z.number().int().min(0).max(10_000).default(0),
  labels: z.record(z.string().min(1).max(100), z.string().max(200)).optional(),
});
export type EngineSpec = z.infer<typeof engineSpecSchema>;

export type ReadEngine =
  | { readonly ok: true; readonly engine: EngineSpec }
  | { readonly ok: false; readonly problem: string };

const LONGEST_LINE = 2000;

/** `ssh://me@lab2 slots=8 partition=long`, or the same as a JSON object. */
export function readEngineLine(line: string): ReadEngine {
  if (line.length > LONGEST_LINE) return { ok: false, problem: 'the line is too long' };
  if (line.trimStart().startsWith('{')) return fromJson(line);
  const [host = '', ...words] = line.trim().split(/\s+/);
  if (host.includes('=') && !host.includes('://'))
    return { ok: false, problem: 'the engine comes first, then slots=N' };
  const labels: Record<string, string> = {};
  let slots: number | undefined;
  for (const word of words) {
    const at = word.indexOf('=');
    if (at < 1) return { ok: false, problem: `"${word}" is neither slots=N nor NAME=VALUE` };
    const [name, value] = [word.slice(0, at), word.slice(at + 1)];
    if (name !== 'slots') labels[name] = value;
    else if (/^\d{1,5}$/.test(value)) slots = Number(value);
    else return { ok: false, problem: `slots takes a whole number, not "${value}"` };
  }
  return checked({
    host,
    ...(slots !== undefined && { slots }),
    ...(Object.keys(labels).length > 0 && { labels }),
  });
}

function fromJson(text: string): ReadEngine {
  try {
    return checked(JSON.parse(text));
  } catch (error) {
    return { ok: false, problem: `it is no JSON: ${errorText(error)}` };
  }
}

function checked(value: unknown): ReadEngine {
  const read = engineSpecSchema.safeParse(value);
  if (read.success) return { ok: true, engine: read.data };
  const [issue] = read.error.issues;
  return { ok: false, problem: `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim() };
}

/** As a line that `readEngineLine` reads. */
export const engineLine = ({ host, slots, labels = {} }: EngineSpec): string =>
  [host, `slots=${slots}`, ...Object.entries(labels).map(([name, value]) => `${name}=${value}`)].join(' ');

export interface EngineList {
  readonly engines: readonly EngineSpec[];
  /** A sentence for each line that means nothing. */
  readonly problems: readonly string[];
}

/** One engine a line, with `#` for comments, or one JSON list. Null for a list that cannot be read as a whole. */
export function readEngineList(text: string): EngineList | null {
  const entries = text.trimStart().startsWith('[') ? listedIn(text) : linesOf(text);
  if (entries === null) return null;
  const engines = new Map<string, EngineSpec>();
  const problems: string[] = [];
  for (const { where, read } of entries) {
    if (!read.ok) problems.push(`${where}: ${read.problem}`);
    else if (engines.has(read.engine.host)) problems.push(`${where}: ${read.engine.host} is named twice`);
    else engines.set(read.engine.host, read.engine);
  }
  return { engines: [...engines.values()], problems };
}

interface Entry {
  readonly where: string;
  readonly read: ReadEngine;
}

function linesOf(text: string): Entry[] {
  return text.split('\n').flatMap((line, i) => {
    const said = line.trim();
    return said === '' || said.startsWith('#')
      ? []
      : [{ where: `line ${i + 1}`, read: readEngineLine(said) }];
  });
}

function listedIn(text: string): Entry[] | null {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return null;
    return list.map((value, i) => ({
      where: `entry ${i + 1}`,
      read: typeof value === 'string' ? readEngineLine(value) : checked(value),
    }));
  } catch {
    return null;
  }
}
