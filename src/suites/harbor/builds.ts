/** Images that are built from the folders of a task. The images' names are hashes of what decides the build, so that equal ones are one image. */
import { posix } from 'node:path';
import { sha256 } from '../../base/sha256.ts';
import type { BuildRecipe } from '../../environment/places/buildRecipes.ts';
import { type TaskFile, TaskFolderError } from '../taskFiles.ts';
import type { ComposeImage } from './compose.ts';
import { harborFiles } from './harborIgnore.ts';
import { builtImage } from './taskFolder.ts';

/** A build as the instance has it: its files are read again when the image is built. */
export interface TaskBuild {
  readonly image: string;
  /** The folder below the task. */
  readonly folder: string;
  readonly timeout_s: number;
  /** Absent: Dockerfile. */
  readonly dockerfile?: string | undefined;
  readonly target?: string | undefined;
  readonly args?: Readonly<Record<string, string>> | undefined;
  /** The image that gets the copies, where no Dockerfile makes one. */
  readonly from?: string | undefined;
  /** The copies of files below environment/. */
  readonly copies?: readonly { readonly from: string; readonly to: string }[] | undefined;
}

type Spec = Omit<TaskBuild, 'image'>;
/** The files below a folder of the task. */
type FilesBelow = (folder: string) => readonly TaskFile[];

const ENVIRONMENT = 'environment';
const DOCKERFILE = 'Dockerfile';
/** No folder of a task has the name. */
const COPIED = 'swebatch.copied';

const textFile = (path: string, text: string): TaskFile => ({
  path,
  content: Buffer.from(text),
  executable: false,
});

/** Files that a mount of the machine would show are copied over the image's. */
function filesOf(
  { folder, dockerfile = DOCKERFILE, from, copies = [] }: Spec,
  below: FilesBelow,
): readonly TaskFile[] {
  const context = from === undefined ? below(folder) : [];
  if (copies.length === 0) return context;
  const environment = below(ENVIRONMENT);
  const copied = copies.flatMap(({ from: source, to }) =>
    environment.flatMap((file) => {
      const inside = source === '' ? `/${file.path}` : file.path.slice(source.length);
      const isThere = source === '' || file.path === source || file.path.startsWith(`${source}/`);
      return isThere ? [{ ...file, path: posix.join(COPIED, to, inside) }] : [];
    }),
  );
  const own = context.find(({ path }) => path === dockerfile);
  const recipe = from === undefined ? Buffer.from(own?.content ?? '').toString('utf8') : `FROM ${from}`;
  const others = context.filter(({ path }) => path !== dockerfile && path !== '.dockerignore');
  const leftOut = context.find(({ path }) => path === '.dockerignore');
  return [
    ...others,
    ...copied,
    ...(leftOut
      ? [textFile('.dockerignore', `${Buffer.from(leftOut.content).toString('utf8')}\n!${COPIED}\n`)]
      : []),
    textFile(dockerfile, `${recipe.trimEnd()}\nCOPY ${COPIED}/ /\n`),
  ];
}

function nameOf(
  { dockerfile = DOCKERFILE, target, args = {}, from }: Spec,
  files: readonly TaskFile[],
): string {
  const plain = builtImage(files);
  const isPlain = dockerfile === DOCKERFILE && target === undefined && Object.keys(args).length === 0;
  if (isPlain && from === undefined) return plain;
  const [name] = plain.split(':');
  return `${name}:${sha256(JSON.stringify([plain, dockerfile, target, args, from])).slice(0, 32)}`;
}

/** The name of a Compose file's image here, and its build; a name of a registry where nothing is built. */
export function imageBuild(
  { image, build, copies }: ComposeImage,
  timeout_s: number,
  below: FilesBelow,
): { readonly image: string | undefined; readonly build?: TaskBuild } {
  if (!build && (copies.length === 0 || image === undefined)) return { image };
  const spec: Spec = {
    folder: build ? build.context : ENVIRONMENT,
    timeout_s,
    ...(build && build.dockerfile !== DOCKERFILE && { dockerfile: build.dockerfile }),
    ...(build?.target !== undefined && { target: build.target }),
    ...(build && Object.keys(build.args).length > 0 && { args: build.args }),
    ...(!build && { from: image }),
    ...(copies.length > 0 && { copies }),
  };
  const name = nameOf(spec, filesOf(spec, below));
  return { image: name, build: { image: name, ...spec } };
}

/** `task`: its folder. The files are read when the image is built. */
export function recipeOfBuild(task: string, id: string, build: TaskBuild): BuildRecipe {
  const { image, folder, timeout_s, dockerfile, target, args, from } = build;
  return {
    timeoutS: timeout_s,
    ...(dockerfile !== undefined && { dockerfile }),
    ...(target !== undefined && { target }),
    ...(args !== undefined && { args }),
    ...(from !== undefined && { from }),
    files() {
      const files = filesOf(build, (below) => harborFiles(task, below));
      if (nameOf(build, files) === image) return files;
      throw new TaskFolderError(`${folder} of ${id} has changed since its image was named`);
    },
  };
}
