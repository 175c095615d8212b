/**
 * Trajectories in ATIF as a run: one file, or a folder of `<id>.atif.json` as swebatch exports them. The format states neither patch nor verdict, and
 * not how the attempt ended, so all of these are unknown.
 */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import { type AtifConversation, readAtif } from '../../formats/trajectories/readAtif.ts';
import { readForeignFile } from './foreignFile.ts';
import { type ImportedInstance, UNKNOWN_MODEL } from './importedRun.ts';
import type { GradedElsewhere } from './readReports.ts';

/** Harbor keeps them as `<trial>/agent/trajectory.json`. */
function idOf(path: string): string {
  const name = basename(path).replace(/(?:\.atif)?\.json$/, '');
  if (name !== 'trajectory') return name;
  const folder = dirname(resolve(path));
  return basename(basename(folder) === 'agent' ? dirname(folder) : folder);
}

const filesIn = (source: string): string[] =>
  !statSync(source).isDirectory()
    ? [source]
    : readdirSync(source, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.atif.json') && !/\.attempt-\d+\.atif\.json$/.test(file))
        .sort()
        .map((file) => join(source, file));

/** Of several files of one instance each is an epoch, in the order of their paths. */
export function readAtifFiles(source: string): GradedElsewhere {
  const problems: string[] = [];
  const epochs = new Map<string, number>();
  const instances: ImportedInstance[] = [];
  for (const path of filesIn(source)) {
    const read = readAtif(readForeignFile(path));
    const id = idOf(path);
    const wrong = read.ok ? instanceIdProblem(id) : null;
    if (!read.ok) problems.push(`${path}: ${read.message}`);
    else if (wrong !== null)
      problems.push(`${path}: the name ${JSON.stringify(id)} is not an instance id: it ${wrong}`);
    else {
      const epoch = (epochs.get(id) ?? 0) + 1;
      epochs.set(id, epoch);
      instances.push({ ...instanceOf(id, path, read.value), epoch });
    }
  }
  const warnings = ['ATIF states neither patch nor verdict: both are unknown'];
  return { imported: { folder: source, instances, warnings, problems }, verdicts: new Map() };
}

function instanceOf(instanceId: string, file: string, read: AtifConversation): ImportedInstance {
  const costs = read.calls.map(({ costNano }) => costNano);
  const known = costs.length > 0 && costs.every((cost) => cost !== null);
  return {
    instanceId,
    model: read.model ?? read.agent?.name ?? UNKNOWN_MODEL,
    ...{ format: 'atif', version: read.agent?.version ?? null, exitStatus: null },
    ...{ exitReason: 'submitted', errorMessage: null, submission: null, modelPatch: null },
    ...{ steps: read.steps, costNano: known ? costs.reduce<number>((sum, cost) => sum + cost, 0) : null },
    ...{ config: {}, messages: read.messages, calls: read.calls },
    ...{ startedAt: read.startedAt, endedAt: read.endedAt, file },
    notes: ['ATIF does not say how the attempt ended'],
  };
}
