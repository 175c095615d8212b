/** A registry in Harbor's form, `registry.json`: where each task of a dataset lies (harbor 0.26.0, models/registry.py). */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { closest } from '../../base/text/closest.ts';
import { errorText } from '../../base/text/errorText.ts';
import { boundedFetch } from '../../dataset/hub.ts';
import type { ReadRegistry } from '../suite.ts';

const REGISTRY_URL = 'https://raw.githubusercontent.com/laude-institute/harbor/main/registry.json';
const VARIABLE = 'SWEBATCH_HARBOR_REGISTRY';
const MOST_BYTES = 256 * 2 ** 20;

const taskSchema = z.object({
  name: z.string().min(1),
  git_url: z.string().nullish(),
  git_commit_id: z.string().nullish(),
  path: z.string(),
});
const registrySchema = z.array(
  z.object({ name: z.string(), version: z.string(), tasks: z.array(taskSchema).min(1) }),
);

async function download(url: string): Promise<string> {
  const response = await boundedFetch(fetch, MOST_BYTES)(url, { signal: AbortSignal.timeout(120_000) });
  if (!response.ok) throw new Error(`the answer is ${response.status}`);
  return response.text();
}

/** The version that Harbor chooses: `head`, else the highest number, else the last by name (registry/client/base.py). */
export function newestVersion(versions: readonly string[]): string {
  if (versions.includes('head')) return 'head';
  const numbered = versions.filter((version) => /^v?\d+(\.\d+)*$/.test(version));
  const order = new Intl.Collator('en', { numeric: true }).compare;
  return (numbered.length > 0 ? numbered : [...versions]).toSorted(order).at(-1)!;
}

export const harborRegistry: ReadRegistry = async (wanted, env) => {
  const place = env[VARIABLE] || REGISTRY_URL;
  const isFile = !/^https?:/.test(place);
  const file = place.startsWith('file:') ? fileURLToPath(place) : place;
  const refused = (message: string, hint?: string) => ({
    ok: false as const,
    message,
    ...(hint && { hint }),
  });
  let known: unknown;
  try {
    known = JSON.parse(isFile ? await readFile(file, 'utf8') : await download(place));
  } catch (error) {
    return refused(
      `the registry ${place} cannot be read: ${errorText(error)}`,
      `${VARIABLE} names another one: a file or an address`,
    );
  }
  const read = registrySchema.safeParse(known);
  if (!read.success) {
    const [first] = read.error.issues;
    return refused(`${place} is no registry of datasets: ${first?.path.join('.')}: ${first?.message}`);
  }
  const at = wanted.lastIndexOf('@');
  const name = at > 0 ? wanted.slice(0, at) : wanted;
  const versions = read.data.filter((dataset) => dataset.name === name);
  if (versions.length === 0) {
    const close = closest(name, [...new Set(read.data.map((dataset) => dataset.name))]);
    return refused(
      `${place} has no dataset ${JSON.stringify(name)}${close ? `; did you mean ${close}?` : ''}`,
    );
  }
  const version = at > 0 ? wanted.slice(at + 1) : newestVersion(versions.map((dataset) => dataset.version));
  const dataset = versions.find((each) => each.version === version);
  if (!dataset)
    return refused(
      `${name} has no version ${JSON.stringify(version)}; it has ${versions.map((each) => each.version).join(', ')}`,
    );
  const tasks = dataset.tasks.map((task) => ({
    ...{ name: task.name, path: task.path },
    ...(task.git_url != null && { url: task.git_url }),
    ...(task.git_commit_id != null && { commit: task.git_commit_id }),
  }));
  return { ok: true, ...{ name, version, tasks }, folder: isFile ? dirname(resolve(file)) : null };
};
