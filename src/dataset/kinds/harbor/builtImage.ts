/** The name of an image that is built from a folder of a task: by its content, so that equal folders have one image. */
import { hashOfFiles, type TaskFile } from './taskFiles.ts';

/** No registry: what begins so is built here and never pulled. */
export const BUILD_HOST = 'build.swebatch.internal';

export const builtImage = (files: readonly TaskFile[]): string =>
  `${BUILD_HOST}/harbor:${hashOfFiles(files).slice(0, 32)}`;
