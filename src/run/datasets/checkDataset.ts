/** What a dataset holds: kinds, images, licence, and everything that will not run or cannot be graded here, with the reason. */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import type { Dataset } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { type LoadOptions, loadDataset } from '../../suites/loadDataset.ts';
import { planGrading } from '../../suites/suites.ts';
import { UserError } from '../userError.ts';

export interface Unfit {
  readonly instance_id: string;
  /** `refused`: it does not start. `ungradable`: it runs, and gets no verdict. */
  readonly what: 'refused' | 'ungradable';
  readonly why: string;
}

export interface CheckedDataset {
  readonly source: string;
  readonly path: string;
  readonly revision: string | null;
  readonly sha256: string;
  /** "swe-bench" to 500. */
  readonly kinds: Readonly<Record<string, number>>;
  readonly instances: number;
  readonly gradable: number;
  readonly images: number;
  /** As the dataset states it; null where it states none. */
  readonly licence: string | null;
  readonly unfit: readonly Unfit[];
}

const LICENCE_FILES = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE', 'COPYING'];

/** The first line of the licence beside the data, or the field of a dataset card. */
function licenceOf(path: string): string | null {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  for (const folder of isFolder ? [path] : [dirname(path), dirname(dirname(path))]) {
    const card = join(folder, 'README.md');
    const field = existsSync(card) && /^licen[sc]e: *(\S.{0,80})$/m.exec(readFileSync(card, 'utf8'))?.[1];
    if (field) return field;
    const file = LICENCE_FILES.map((name) => join(folder, name)).find((each) => existsSync(each));
    const text =
      file &&
      readFileSync(file, 'utf8')
        .split('\n')
        .find((line) => line.trim() !== '');
    if (text) return text.trim().slice(0, 80);
  }
  return null;
}

export function checkDataset(dataset: Dataset): CheckedDataset {
  const unfit: Unfit[] = [];
  const kinds = new Map<string, number>();
  const images = new Set<string>();
  for (const { instance, refused } of dataset.rows) {
    const kind = instance.kind ?? 'swe-bench';
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    images.add(imageOf(instance));
    const { instance_id } = instance;
    if (refused !== undefined) {
      unfit.push({ instance_id, what: 'refused', why: refused });
      continue;
    }
    const planned = planGrading(instance);
    if (planned.ok) continue;
    const why = planned.reason.replace(`${instance_id} cannot be graded: `, '');
    unfit.push({ instance_id, what: 'ungradable', why });
  }
  return {
    ...{ source: dataset.source, path: dataset.path, revision: dataset.revision, sha256: dataset.fileHash },
    kinds: Object.fromEntries(kinds),
    instances: dataset.rows.length,
    gradable: dataset.rows.length - unfit.length,
    images: images.size,
    licence: licenceOf(dataset.path),
    unfit,
  };
}

/** The rows of a dataset. Throws a UserError with every reason why it cannot be used. `env` has the settings of the hub. */
export async function requireDataset(source: string, options: LoadOptions): Promise<Dataset> {
  const loaded = await loadDataset(source, options);
  if (loaded.ok) return loaded.dataset;
  const problems = loaded.problems.map(({ message }) => `  ${inert(message)}`);
  throw new UserError(
    `the dataset cannot be used; ${problems.length} problem(s) in ${source}:\n${problems.join('\n')}`,
  );
}
