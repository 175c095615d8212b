/** A dataset that is a folder of task folders: each task is a row. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { sha256 } from '../../base/sha256.ts';
import { imageRefusal, withChosenImage } from '../chosenImage.ts';
import type { FolderTask } from '../kinds/datasetKind.ts';
import { kindOfFolder } from '../kinds/datasetKinds.ts';
import { DATASET_ALIASES } from '../knownDatasets.ts';

/** "12 tasks: task.toml has …, for example in fix-tests": one line for each thing, however many tasks have it. */
function collected(tasks: readonly FolderTask[]): string[] {
  const where = new Map<string, string[]>();
  for (const { id, warnings } of tasks)
    for (const text of warnings) where.set(text, [...(where.get(text) ?? []), id]);
  return [...where].map(([text, ids]) =>
    ids.length === 1 ? `${ids[0]}: ${text}` : `${ids.length} tasks, such as ${ids[0]}: ${text}`,
  );
}

/** Undefined where the source is no such folder. */
export function folderDataset(source: string, images?: string) {
  if ((DATASET_ALIASES as readonly string[]).includes(source)) return undefined;
  if (!statSync(source, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const kind = kindOfFolder(source);
  if (!kind?.folders) return undefined;
  const path = resolve(source);
  const tasks = kind.folders.read(path);
  return {
    ...{ source, path, files: [path], split: null, revision: null },
    fileHash: sha256(tasks.map(({ id, hash }) => `${id} ${hash}\n`).join('')),
    rows: tasks.map((task, i) => {
      const refused = task.refused ?? imageRefusal(task.instance, images);
      const instance = withChosenImage(task.instance, images);
      return {
        ...{ instance, rowHash: task.hash, line: i + 1 },
        ...(refused !== undefined && { refused }),
      };
    }),
    warnings: collected(tasks),
  };
}
