/** The flags of `images`, and the settings that they and the configuration of a run give. */
import { z } from 'zod';
import {
  type ImagesConfig,
  imagesConfigSchema,
  mirrorSchema,
} from '../../environment/places/images/imagesConfig.ts';
import { loadLayers } from '../../run/plan/resolveConfig.ts';
import { UserError } from '../../run/userError.ts';
import { filled, integer } from './checks.ts';
import { json } from './commonFlags.ts';
import { type Args, flags } from './flags.ts';

export const imagesFlags = flags({
  action: {
    type: 'string',
    choices: ['plan', 'pull', 'build', 'ls', 'gc', 'check'],
    place: 'required',
    describe:
      'plan: show what is present and missing; build: make those of the bundled dataset (demo); ls: images swebatch pulled; gc: remove some of those; check: exit 1 if an image is unavailable',
  },
  source: {
    type: 'string',
    place: 'optional',
    check: filled,
    describe: 'dataset: a file, a folder, or a known name',
  },
  config: {
    alias: 'c',
    type: 'string',
    list: true,
    describe: "the run's configuration; only images, environment.platform and environment.hosts are used",
  },
  split: { type: 'string', check: filled, describe: 'split of the dataset' },
  dataDir: { type: 'string', check: filled, describe: 'folder with local copies of datasets' },
  slice: { type: 'string', describe: 'Python slice of the dataset' },
  filter: { type: 'string', describe: 'regular expression on instance ids' },
  image: {
    type: 'string',
    list: true,
    check: z.array(z.string().min(1)).optional(),
    describe: 'an image instead of a dataset; repeats',
  },
  platform: { type: 'string', check: filled, describe: 'for example linux/amd64' },
  pull: {
    type: 'string',
    choices: ['missing', 'always'],
    default: 'missing',
    bare: true,
    describe: 'always: also images that are present, in case their tag moved',
  },
  parallel: { type: 'number', check: integer(1), describe: 'pulls at a time' },
  mirror: {
    type: 'string',
    list: true,
    check: z.array(z.string().regex(/^[^=]+=[^=]+$/, 'must be REGISTRY=MIRROR')).optional(),
    describe: 'REGISTRY=MIRROR: the mirror is asked first; repeats',
  },
  pullTimeout: {
    type: 'number',
    check: z.number().min(0).optional(),
    describe: 'seconds without progress before a pull is cut (1200)',
  },
  policy: {
    type: 'string',
    check: imagesConfigSchema.shape.policy.unwrap().optional(),
    describe: 'gc: remove-after or lru:<GB>',
  },
  dryRun: { type: 'boolean', default: false, describe: 'gc: show what would be removed' },
  json,
});
export type ImagesArgs = Args<typeof imagesFlags>;

export interface ImagesSettings {
  readonly images: ImagesConfig;
  readonly platform: string | undefined;
  readonly pullTimeout: number;
  /** From `environment.hosts`; a single undefined is the default engine. */
  readonly hosts: readonly (string | undefined)[];
}

/** Uses the configuration of the run itself, so that images come from the same registries and onto the same engines as during the run. */
export function settingsOf(args: ImagesArgs): ImagesSettings {
  const { images, environment } = loadLayers(args.config ?? [], {}, process.cwd()).config;
  const hosts = environment.hosts.map(({ host }) => host);
  return {
    images: {
      ...images,
      ...(args.policy !== undefined && { policy: args.policy }),
      ...(args.parallel !== undefined && { max_concurrent_pulls: args.parallel }),
      ...(args.mirror && { mirrors: mirrorsOf(args.mirror) }),
    },
    platform: args.platform ?? environment.platform,
    pullTimeout: args.pullTimeout ?? environment.pull_timeout,
    hosts: hosts.length > 0 ? hosts : [undefined],
  };
}

function mirrorsOf(pairs: readonly string[]): ImagesConfig['mirrors'] {
  const split = pairs.map((pair) => pair.split('=') as [string, string]);
  for (const [registry, mirror] of split) {
    const checked = mirrorSchema.safeParse(mirror);
    if (!checked.success)
      throw new UserError(`--mirror ${registry}=${mirror}: ${checked.error.issues[0]!.message}`);
  }
  const byRegistry = Map.groupBy(split, ([registry]) => registry);
  return Object.fromEntries([...byRegistry].map(([registry, list]) => [registry, list.map((p) => p[1])]));
}
