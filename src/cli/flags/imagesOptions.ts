/** What `swebatch images` takes: its flags, and what a run's own configuration says about images and engines. */
import type { Argv } from 'yargs';
import { z } from 'zod';
import { type ImagesConfig, imagesConfigSchema, mirrorSchema } from '../../environment/images/config.ts';
import { CliError } from '../terminal/context.ts';
import { loadFiles } from './configOptions.ts';
import { jsonOption } from './verb.ts';

const argsSchema = z.object({
  action: z.enum(['plan', 'pull', 'ls', 'gc', 'check']),
  source: z.string().min(1).optional(),
  config: z.array(z.string()).optional(),
  split: z.string().min(1).optional(),
  dataDir: z.string().min(1).optional(),
  slice: z.string().optional(),
  filter: z.string().optional(),
  image: z.array(z.string().min(1)).optional(),
  platform: z.string().min(1).optional(),
  policy: imagesConfigSchema.shape.policy.unwrap().optional(),
  parallel: z.number().int().min(1).optional(),
  mirror: z.array(z.string().regex(/^[^=]+=[^=]+$/, 'must be REGISTRY=MIRROR')).optional(),
  pullTimeout: z.number().min(0).optional(),
  pull: z.enum(['missing', 'always']),
  dryRun: z.boolean(),
  json: z.boolean(),
});

export type ImagesArgs = z.infer<typeof argsSchema>;

export function parseImagesArgs(argv: unknown): ImagesArgs {
  const parsed = argsSchema.safeParse(argv);
  if (parsed.success) return parsed.data;
  throw new CliError(parsed.error.issues.map((i) => `--${String(i.path[0])}: ${i.message}`).join('\n'));
}

export interface ImagesSettings {
  readonly images: ImagesConfig;
  readonly platform: string | undefined;
  readonly pullTimeout: number;
  /** Of `environment.hosts`; one undefined is the default engine. */
  readonly hosts: readonly (string | undefined)[];
}

/** The configuration that a run will have, so that what is fetched before the night comes from where the night would fetch it. */
export function settingsOf(args: ImagesArgs): ImagesSettings {
  const specs = args.config ?? [];
  const { images, environment } = loadFiles(
    specs.every((spec) => spec.includes('=')) ? ['default', ...specs] : specs,
    {},
  ).config;
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
      throw new CliError(`--mirror ${registry}=${mirror}: ${checked.error.issues[0]!.message}`);
  }
  const byRegistry = Map.groupBy(split, ([registry]) => registry);
  return Object.fromEntries([...byRegistry].map(([registry, list]) => [registry, list.map((p) => p[1])]));
}

export const imagesOptions = (parser: Argv): Argv =>
  parser
    .positional('action', {
      type: 'string',
      choices: argsSchema.shape.action.options,
      demandOption: true,
      describe:
        'plan: what is here and what has to come; pull; ls: what swebatch pulled; gc: remove of that; check: exit 1 when an image cannot be had',
    })
    .positional('source', { type: 'string', describe: 'dataset: a file, a folder, or a known name' })
    .option('config', {
      alias: 'c',
      type: 'string',
      array: true,
      requiresArg: true,
      describe:
        'of the run: images, environment.platform and environment.hosts count; file or key.path=value',
    })
    .option('split', { type: 'string', requiresArg: true, describe: 'split of the dataset' })
    .option('data-dir', {
      type: 'string',
      requiresArg: true,
      describe: 'folder with local copies of datasets',
    })
    .option('slice', { type: 'string', requiresArg: true, describe: 'Python slice of the dataset' })
    .option('filter', { type: 'string', requiresArg: true, describe: 'regular expression on instance ids' })
    .option('image', {
      type: 'string',
      array: true,
      requiresArg: true,
      describe: 'an image instead of a dataset; repeats',
    })
    .option('platform', { type: 'string', requiresArg: true, describe: 'for example linux/amd64' })
    .option('pull', {
      type: 'string',
      choices: ['missing', 'always'],
      default: 'missing',
      describe: 'always: also images that are here, in case their tag moved',
    })
    .option('parallel', { type: 'number', requiresArg: true, describe: 'pulls at a time' })
    .option('mirror', {
      type: 'string',
      array: true,
      requiresArg: true,
      describe: 'REGISTRY=MIRROR that is asked first; repeats',
    })
    .option('pull-timeout', {
      type: 'number',
      requiresArg: true,
      describe: 'seconds without progress before a pull is cut (1200)',
    })
    .option('policy', { type: 'string', requiresArg: true, describe: 'gc: remove-after or lru:<GB>' })
    .option('dry-run', { type: 'boolean', default: false, describe: 'gc: only say what would go' })
    .option('json', jsonOption)
    .example('$0 images plan verified', 'what is here, what has to come, how much disk')
    .example('$0 images pull lite --slice 0:20 --parallel 3', 'before the night starts')
    .example('$0 images pull verified -c night.yaml', 'from the mirrors and onto the engines of that run')
    .example('$0 images gc --policy lru:100', 'keep the 100 GB used last, of what swebatch pulled');
