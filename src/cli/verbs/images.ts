/** `swebatch images plan | pull | build | ls | gc | check`: the images of a dataset, before and after the runs. */

import { z } from 'zod';
import { comingText, isMadeHere } from '../../base/imageReference.ts';
import { MOST, setting } from '../../base/plausible.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { headOf, readInstance } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { selectInstances } from '../../dataset/select.ts';
import { buildDemoImages } from '../../demo/demoDataset.ts';
import { EnvironmentError } from '../../environment/environment.ts';
import type { ImageEvent } from '../../environment/places/imageJobs.ts';
import { type ImagePlan, tooMuch, toPullOf } from '../../environment/places/imagePlan.ts';
import type { ImageService } from '../../environment/places/imageService.ts';
import {
  type ImagesConfig,
  imagesConfigSchema,
  mirrorSchema,
} from '../../environment/places/imagesConfig.ts';
import { requireDataset } from '../../run/datasets.ts';
import { openImages } from '../../run/places/engines.ts';
import { loadLayers } from '../../run/plan/resolveConfig.ts';
import { UserError } from '../../run/userError.ts';
import { rememberBuilds } from '../../suites/suites.ts';
import { filledText, integer } from '../flags/checks.ts';
import { type Args, defineVerb, flags, json, oneOf, string, toggle } from '../flags/verb.ts';
import { EXIT, printData, printJson, printResult, say } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

const imagesFlags = flags({
  action: {
    type: 'string',
    choices: ['plan', 'pull', 'build', 'ls', 'gc', 'check'],
    place: 'required',
    describe:
      'plan: show what is present and missing; build: make those of the bundled dataset (demo); ls: images swebatch pulled; gc: remove some of those; check: exit 1 if an image is unavailable',
  },
  source: { ...filledText('dataset: a file, a folder, or a known name'), place: 'optional' },
  config: {
    alias: 'c',
    list: true,
    ...string("the run's configuration; only images and environment.platform are used"),
  },
  split: filledText('split of the dataset'),
  dataDir: filledText('folder with local copies of datasets'),
  slice: string('Python slice of the dataset'),
  filter: string('regular expression on instance ids'),
  image: {
    ...string('an image instead of a dataset; repeats'),
    list: true,
    check: z.array(z.string().min(1)).optional(),
  },
  platform: filledText('for example linux/amd64'),
  pull: {
    type: 'string',
    default: 'missing',
    ...oneOf(['missing', 'always'], 'always: also images that are present, in case their tag moved'),
  },
  parallel: integer(1, 'pulls at a time', MOST.atOnce),
  mirror: {
    ...string('REGISTRY=MIRROR: the mirror is asked first; repeats'),
    list: true,
    check: z.array(z.string().regex(/^[^=]+=[^=]+$/, 'must be REGISTRY=MIRROR')).optional(),
  },
  pullTimeout: {
    type: 'number',
    check: setting.seconds().optional(),
    describe: 'seconds without progress before a pull is cut (1200)',
  },
  policy: {
    ...string('gc: remove-after or lru:<GB>'),
    check: imagesConfigSchema.shape.policy.unwrap().optional(),
  },
  dryRun: toggle('gc: show what would be removed'),
  json,
});
type ImagesArgs = Args<typeof imagesFlags>;

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

interface Result {
  readonly code: number;
  /** The data for --json. */
  readonly data: unknown;
  /** The text for people. */
  readonly text: string;
  /** Lines for stderr. */
  readonly said?: readonly string[];
}
const gb = (bytes: number) =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;

async function imagesOf(args: ImagesArgs): Promise<string[]> {
  if (args.image) return args.image;
  if (!args.source)
    throw new UserError(`images ${args.action} needs a dataset or --image`, {
      hint: `for example: swebatch images ${args.action} verified --slice 0:50`,
    });
  const { split, dataDir, slice, filter } = args;
  const { rows } = await requireDataset(args.source, { split, dataDir, env: process.env });
  const selection = selectInstances(rows, { slice, filter });
  if (selection.kind === 'empty') throw new UserError(selection.message);
  if (selection.kind === 'invalid') throw new UserError(selection.problems.join('\n'));
  const usable = selection.rows.filter(({ row }) => row.refused === undefined);
  // A large dataset has its rows in its file, and is read again only where an image is built.
  const built = usable.flatMap(({ row }) =>
    'file' in row && !isMadeHere(imageOf(row)) ? [] : rememberBuilds(readInstance(row)),
  );
  const images = usable.map(({ row }) => imageOf(headOf(row)));
  return [...new Set([...images, ...built])];
}

/** One line for each thing worth knowing; the bytes of a pull every five seconds. */
function speaker(): (event: ImageEvent) => void {
  let last = 0;
  return (event) => {
    if (event.type === 'started') say(`${isMadeHere(event.image) ? 'building' : 'pulling'} ${event.image}`);
    else if (event.type === 'retry')
      say(`${event.image}: ${inert(event.message)}; trying again in ${Math.round(event.waitMs / 1000)} s`);
    else if (event.type === 'paused')
      say(`pulls pause until ${new Date(event.until).toISOString()}: ${inert(event.message)}`);
    else if (event.type === 'ready') {
      const { image, pulled, pullMs, warnings } = event.ready;
      const came = isMadeHere(image) ? 'built' : 'pulled';
      say(`${image}: ${pulled ? `${came} in ${(pullMs / 1000).toFixed(1)} s` : 'is here'}`);
      for (const warning of warnings) say(`warning: ${warning}`);
    } else if (event.type === 'progress' && Date.now() - last > 5000) {
      last = Date.now();
      const { downloadedBytes, totalBytes } = event.progress;
      say(`${event.image}: ${gb(downloadedBytes)} of ${gb(totalBytes)}`);
    }
  };
}

const planText = (plan: ImagePlan, free: number | undefined): string =>
  [
    `${plural(plan.images.length, 'image')}: ${plan.here} here, ${comingText(toPullOf(plan))}, ${plan.unknown.length} not known`,
    `to download ${gb(plan.downloadBytes)} (layers that images share counted once), about ${gb(plan.diskBytes)} on disk`,
    ...(plan.estimated > 0
      ? [
          `estimated from ${plan.toPull - plan.estimated} of ${plan.toPull} images: Docker Hub counts each request for a size as a pull`,
        ]
      : []),
    ...(free === undefined ? [] : [`free ${gb(free)}`]),
  ].join('\n');

async function plan(args: ImagesArgs, service: ImageService): Promise<Result> {
  const found = await service.plan(await imagesOf(args), { check: args.action === 'check' });
  const freeBytes = await service.freeBytes();
  const problem = tooMuch(found, { ...service, freeBytes });
  return {
    code: args.action === 'check' && found.unknown.length > 0 ? EXIT.gate : EXIT.done,
    data: { ...found, freeBytes: freeBytes ?? null, fits: problem === undefined },
    text: planText(found, freeBytes),
    said: [
      ...found.unknown.map(({ image, problem: why }) => `${image}: ${inert(why)}`),
      problem ?? [],
    ].flat(),
  };
}

async function pull(args: ImagesArgs, service: ImageService): Promise<Result> {
  const images = await imagesOf(args);
  const results = await Promise.all(
    images.map((image) =>
      service.ensure(image, { signal: undefined, waits: () => undefined }).catch((error: unknown) => {
        if (!(error instanceof EnvironmentError)) throw error;
        return { image, error: { code: error.code, kind: error.sub, message: error.message } };
      }),
    ),
  );
  const failed = results.flatMap((r) => ('error' in r ? [r] : []));
  return {
    code: failed.length > 0 ? EXIT.incomplete : EXIT.done,
    data: results,
    text: `${results.length - failed.length} of ${results.length} images are here`,
    said: failed.map(({ error }) => `error: ${inert(error.message)}`),
  };
}

/** Images that the dataset builds; others are pulled. */
async function build(args: ImagesArgs, service: ImageService): Promise<Result> {
  const image = (await imagesOf(args)).filter(isMadeHere);
  if (image.length === 0)
    throw new UserError(`no image of ${args.source} is built from a Dockerfile`, {
      hint: 'swebatch images pull fetches those that have a name',
    });
  return pull({ ...args, image }, service);
}

async function ls(_: ImagesArgs, service: ImageService): Promise<Result> {
  const rows = await service.own();
  const text =
    rows.length === 0
      ? 'swebatch has pulled no images on this engine'
      : table(
          ['image', 'size', 'last used', 'state'],
          rows.map((r) => [r.image, gb(r.bytes), new Date(r.usedAt).toISOString().slice(0, 16), r.state]),
        );
  return { code: EXIT.done, data: rows, text };
}

async function gc({ policy = 'remove-after', dryRun }: ImagesArgs, service: ImageService): Promise<Result> {
  const { removed, kept } = await service.collect({ policy, dryRun });
  const bytes = removed.reduce((sum, image) => sum + image.bytes, 0);
  return {
    code: EXIT.done,
    data: { removed, kept, dryRun },
    text: removed.map(({ image }) => image).join('\n'),
    said: [
      `${dryRun ? 'would remove' : 'removed'} ${plural(removed.length, 'image')}, ${gb(bytes)} with shared layers`,
      ...kept.map(({ image, reason }) => `kept ${image}: ${inert(reason)}`),
    ],
  };
}

const ACTIONS = { plan, check: plan, pull, build, ls, gc };

export const imagesVerb = defineVerb({
  name: 'images',
  describe: 'plan, pull, list, remove and check the images of a dataset',
  flags: imagesFlags,
  examples: [
    ['$0 images plan verified', 'what is here, what has to come, how much disk'],
    ['$0 images pull lite --slice 0:20 --parallel 3', 'before the night starts'],
    ['$0 images pull verified -c night.yaml', 'from the mirrors of that run'],
    ['$0 images gc --policy lru:100', 'keep the 100 GB used last, of what swebatch pulled'],
  ],
  async run(args) {
    if (args.action === 'build' && args.source === 'demo') {
      const made = await buildDemoImages(say);
      const counted = `${made.built.length} of ${made.images} images built, the others were here`;
      printResult(args.json, made, () => counted);
      return EXIT.done;
    }
    // The configuration of the run itself, so that images come from the same registries as during the run.
    const { images: given, environment } = loadLayers(args.config ?? [], {}, process.cwd()).config;
    const images = {
      ...given,
      ...(args.policy !== undefined && { policy: args.policy }),
      ...(args.parallel !== undefined && { max_concurrent_pulls: args.parallel }),
      ...(args.mirror && { mirrors: mirrorsOf(args.mirror) }),
    };
    const service = await openImages(process.env, {
      config: images,
      pull: args.pull,
      platform: args.platform ?? environment.platform,
      stallSeconds: args.pullTimeout ?? environment.pull_timeout,
      onWarning: (message) => say(`warning: ${inert(message)}`),
      onEvent: speaker(),
      onDisk: ({ open, message }) =>
        say(
          open ? 'the disk has room again' : `${message}: pulls wait until there is room (images.disk_low)`,
        ),
    });
    const result = await ACTIONS[args.action](args, service).finally(() => service.close());
    if (args.json) printJson(result.data);
    else if (result.text !== '') printData(result.text);
    for (const line of result.said ?? []) say(line);
    return result.code;
  },
});
