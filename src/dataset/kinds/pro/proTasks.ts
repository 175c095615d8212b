/** SWE-bench Pro: rows of the hub, and its own repository, which keeps the scripts that grade them. */
import type { DatasetKind } from '../datasetKind.ts';
import { isProRow, proColumns } from './proColumns.ts';
import { isProFolder, readProFolder } from './proFolder.ts';
import { proBuilds, proImage } from './proImage.ts';

const NAME = 'swe-bench-pro';

export const pro: DatasetKind = {
  name: NAME,
  rows: { is: isProRow, columns: proColumns },
  folders: { is: isProFolder, read: (dir) => readProFolder(dir, NAME) },
  container: () => ({ cwd: '/app' }),
  builtImage: proImage,
  builds: proBuilds,
};
