/** The name of an image that is built from a folder of a task: by its content, so that equal folders have one image. */
import { OWN_HOST } from '../../../base/imageReference.ts';
import { hashOfFiles, type TaskFile } from './taskFiles.ts';

export const builtImage = (files: readonly TaskFile[]): string =>
  `${OWN_HOST}/harbor:${hashOfFiles(files).slice(0, 32)}`;
