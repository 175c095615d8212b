/** `swebatch images plan | pull | ls | gc | check`: the images of a dataset, before and after the runs. */
import type { Argv } from 'yargs';
import { z } from 'zod';
import { imageOf } from '../dataset/instance.ts';
import { loadDataset } from '../dataset/load.ts';
import { selectInstances } from '../dataset/select.ts';
import { EnvironmentError } from '../environment/environment.ts';
import { type ImagesConfig, imagesConfigSchema } from '../environment/images/config.ts';
import type { ImagePlan } from '../environment/images/plan.ts';
import type { ImageService } from '../environment/images/service.ts';
import type { StageEvent } from '../environment/images/stage.ts';
import { CliError, EXIT, inert, printData, printJson, say } from './context.ts';
import { hubVariables } from './datasets.ts';
import { openImages } from './imageEngine.ts';
import { table } from './table.ts';
import { jsonOption, type Verb } from './verb.ts';

const argsSchema = z.object({
  action: z.enum(['plan', 'pull', 'ls', 'gc', 'check']),
  source: z.string().min(1).optional(),
  split: z.string().min(1).optional(),
  dataDir: z.string().min(1).optional(),
  slice: z.string().optional(),
  filter: z.string().optional(),
  image: z.array(z.string().min(1)).optional(),
  platform: z.string().min(1).optional(),
  policy: imagesConfigSchema.shape.policy.unwrap().optional(),
  parallel: z.number().int().min(1).optional(),
  mirror: z.array(z.string().regex(/^[^=]+=[^=]+$/, 'must be REGISTRY=MIRROR')).optional(),
  pullTimeout: z.number().min(0),
  pull: z.enum(['missing', 'always']),
  dryRun: z.boolean(),
  json: z.boolean(),
});
type Args = z.infer<typeof argsSchema>;

const gb = (bytes: number) =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;

async function imagesOf(args: Args): Promise<string[]> {
  if (args.image) return args.image;
  if (!args.source)
    throw new CliError(`images ${args.action} needs a dataset or --image`, {
      hint: `for example: swebatch images ${args.action} verified --slice 0:50`,
    });
  const { split, dataDir, slice, filter } = args;
  const loaded = await loadDataset(args.source, { split, dataDir, env: hubVariables() });
  if (!loaded.ok) throw new CliError(loaded.problems.map((p) => inert(p.message)).join('\n'));
  const selection = selectInstances(loaded.dataset.rows, { slice, filter });
  if (selection.kind === 'empty') throw new CliError(selection.message);
  if (selection.kind === 'invalid') throw new CliError(selection.problems.join('\n'));
  return [...new Set(selection.rows.map(({ row }) => imageOf(row.instance)))];
}

function configOf(args: Args): ImagesConfig {
  const mirrors = Map.groupBy(
    (args.mirror ?? []).map((pair) => pair.split('=') as [string, string]),
    ([registry]) => registry,
  );
  return imagesConfigSchema.parse({
    ...(args.policy !== undefined && { policy: args.policy }),
    ...(args.parallel !== undefined && { max_concurrent_pulls: args.parallel }),
    mirrors: Object.fromEntries([...mirrors].map(([registry, pairs]) => [registry, pairs.map((p) => p[1])])),
  });
}

/** One line for each thing worth knowing; the bytes of a pull every five seconds. */
function speaker(): (event: StageEvent) => void {
  let last = 0;
  return (event) => {
    if (event.type === 'started') say(`pulling ${event.image}`);
    else if (event.type === 'retry')
      say(`${event.image}: ${inert(event.message)}; trying again in ${Math.round(event.waitMs / 1000)} s`);
    else if (event.type === 'paused')
      say(`pulls pause until ${new Date(event.until).toISOString()}: ${inert(event.message)}`);
    else if (event.type === 'ready') {
      const { image, pulled, pullMs, warnings } = event.ready;
      say(`${image}: ${pulled ? `pulled in ${(pullMs / 1000).toFixed(1)} s` : 'is here'}`);
      for (const warning of warnings) say(`warning: ${warning}`);
    } else if (event.type === 'progress' && Date.now() - last > 5000) {
      last = Date.now();
      const { downloadedBytes, totalBytes } = event.progress;
      say(`${event.image}: ${gb(downloadedBytes)} of ${gb(totalBytes)}`);
    }
  };
}

function printPlan(plan: ImagePlan, free: number | undefined): void {
  printData(
    [
      `${plan.images.length} images: ${plan.here} here, ${plan.toPull} to pull, ${plan.unknown.length} not known`,
      `to download ${gb(plan.downloadBytes)} (layers that images share counted once), about ${gb(plan.diskBytes)} on disk`,
      ...(plan.estimated > 0
        ? [
            `estimated from ${plan.toPull - plan.estimated} of ${plan.toPull} images: Docker Hub counts each question for a size as a pull`,
          ]
        : []),
      ...(free === undefined ? [] : [`free ${gb(free)}`]),
    ].join('\n'),
  );
  for (const { image, problem } of plan.unknown) say(`${image}: ${inert(problem)}`);
}

async function plan(args: Args, service: ImageService): Promise<number> {
  const images = await imagesOf(args);
  const found = await service.plan(images, { check: args.action === 'check' });
  const { freeBytes } = await service.disk.check();
  const fits = freeBytes === undefined || found.diskBytes <= freeBytes;
  if (args.json) printJson({ ...found, freeBytes: freeBytes ?? null, fits });
  else printPlan(found, freeBytes);
  if (!fits) say('that does not fit: use --slice, or images.policy remove-after or lru:<GB>');
  if (args.action === 'check') return found.unknown.length > 0 ? EXIT.gate : EXIT.done;
  return EXIT.done;
}

async function pull(args: Args, service: ImageService): Promise<number> {
  const images = await imagesOf(args);
  const results = await Promise.all(
    images.map((image) =>
      service.stage.ensure(image).catch((error: unknown) => {
        if (!(error instanceof EnvironmentError)) throw error;
        return { image, error: { code: error.code, kind: error.sub, message: error.message } };
      }),
    ),
  );
  const failed = results.flatMap((r) => ('error' in r ? [r] : []));
  if (args.json) printJson(results);
  else printData(`${results.length - failed.length} of ${results.length} images are here`);
  for (const { error } of failed) say(`error: ${inert(error.message)}`);
  return failed.length > 0 ? EXIT.incomplete : EXIT.done;
}

async function ls(args: Args, service: ImageService): Promise<number> {
  const { id } = await service.engine.info();
  const needed = await service.ledger.needed();
  const rows = await Promise.all(
    (await service.ledger.own(id)).map(async (own) => {
      const local = await service.engine.inspect(own.image);
      const state = !local
        ? 'gone'
        : local.id !== own.id
          ? 'replaced'
          : needed.has(own.image)
            ? 'needed'
            : 'free';
      return { ...own, state };
    }),
  );
  if (args.json) printJson(rows);
  else if (rows.length === 0) printData('swebatch has pulled no images on this engine');
  else
    printData(
      table(
        ['image', 'size', 'last used', 'state'],
        rows.map((r) => [r.image, gb(r.bytes), new Date(r.usedAt).toISOString().slice(0, 16), r.state]),
      ),
    );
  return EXIT.done;
}

async function gc(args: Args, service: ImageService): Promise<number> {
  const policy = args.policy ?? 'remove-after';
  const { removed, kept } = await service.collect({ policy, dryRun: args.dryRun });
  if (args.json) printJson({ removed, kept, dryRun: args.dryRun });
  else {
    const bytes = removed.reduce((sum, image) => sum + image.bytes, 0);
    for (const { image } of removed) printData(image);
    say(
      `${args.dryRun ? 'would remove' : 'removed'} ${removed.length} images, ${gb(bytes)} with shared layers`,
    );
    for (const { image, reason } of kept) say(`kept ${image}: ${inert(reason)}`);
  }
  return EXIT.done;
}

export const imagesVerb: Verb = {
  command: 'images <action> [source]',
  describe: 'plan, pull, list, remove and check the images of a dataset',
  builder: (parser: Argv) =>
    parser
      .positional('action', {
        type: 'string',
        choices: argsSchema.shape.action.options,
        demandOption: true,
        describe:
          'plan: what is here and what has to come; pull; ls: what swebatch pulled; gc: remove of that; check: exit 1 when an image cannot be had',
      })
      .positional('source', { type: 'string', describe: 'dataset: a file, a folder, or a known name' })
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
        default: 1200,
        describe: 'seconds without progress before a pull is cut',
      })
      .option('policy', { type: 'string', requiresArg: true, describe: 'gc: remove-after or lru:<GB>' })
      .option('dry-run', { type: 'boolean', default: false, describe: 'gc: only say what would go' })
      .option('json', jsonOption)
      .example('$0 images plan verified', 'what is here, what has to come, how much disk')
      .example('$0 images pull lite --slice 0:20 --parallel 3', 'before the night starts')
      .example('$0 images gc --policy lru:100', 'keep the 100 GB used last, of what swebatch pulled'),
  async run(argv) {
    const parsed = argsSchema.safeParse(argv);
    if (!parsed.success)
      throw new CliError(parsed.error.issues.map((i) => `--${String(i.path[0])}: ${i.message}`).join('\n'));
    const args = parsed.data;
    const service = await openImages({
      config: configOf(args),
      pull: args.pull,
      platform: args.platform,
      stallSeconds: args.pullTimeout,
      onWarning: (message) => say(`warning: ${inert(message)}`),
      onEvent: speaker(),
    });
    const actions = { plan, check: plan, pull, ls, gc };
    try {
      return await actions[args.action](args, service);
    } finally {
      await service.close();
    }
  },
};
