/** `swebatch datasets ls | show | add | check | pull | verify | convert`: what is here, what is in it, and how to get it. */

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { type Dataset, datasetText, headOf, readInstance } from '../../dataset/dataset.ts';
import { hubAccess, pullDataset, verifySnapshot } from '../../dataset/hub.ts';
import { IMAGE_BUILDERS } from '../../dataset/imageNames.ts';
import { addedDatasets } from '../../dataset/read/addedDatasets.ts';
import { DATASET_ALIASES, KNOWN_DATASETS, locateDataset } from '../../dataset/read/locate.ts';
import {
  addDataset,
  type CheckedDataset,
  checkDatasetHere,
  pinTasks,
  requireDataset,
  type Unfit,
} from '../../run/datasets.ts';
import { databasePath, openForReading, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { type Calibrated, goldStandings } from '../../store/records/evaluations.ts';
import { isTaskAddress, REGISTRIES } from '../../suites/suites.ts';
import { type Args, defineVerb, flags, json, output, string, toggle } from '../flags/verb.ts';
import { EXIT, printData, printJson, printResult, say } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

const datasetsFlags = flags({
  action: {
    type: 'string',
    choices: ['ls', 'show', 'add', 'check', 'pull', 'verify', 'convert'],
    place: 'required',
    describe: 'what to do; see the examples',
  },
  source: {
    ...string(
      `${DATASET_ALIASES.join(', ')}, org/name, or a path; add: also the address of a git repository; tasks: git+URL#PATH@COMMIT, ${REGISTRIES.join(', ')}:NAME@VERSION, hf:org/name`,
    ),
    place: 'optional',
  },
  out: { ...string('convert: the file to write'), place: 'optional' },
  split: string('test where there is one; pull: "all" takes every split'),
  revision: string('branch, tag or commit of the hub'),
  dataDir: string('folder with local copies'),
  images: string(
    `add: whose images are used, instead of those that rows name: ${IMAGE_BUILDERS.join(', ')}, or a pattern with {id}`,
  ),
  ids: toggle('show: the instance ids'),
  output: { ...output, describe: 'check: the results root whose calibrations are shown' },
  json,
});
type Options = Args<typeof datasetsFlags>;

const sourceOf = ({ action, source }: Options): string => {
  if (source) return source;
  throw new UserError(`datasets ${action} needs the name of a dataset`, {
    hint: `give one of ${DATASET_ALIASES.join(', ')}, a hub id such as org/name, or a path`,
  });
};

/** The places to look for a dataset. */
const placesOf = ({ split, revision, dataDir }: Options) => ({ split, revision, dataDir, env: process.env });

async function load(options: Options): Promise<Dataset> {
  const dataset = await requireDataset(sourceOf(options), placesOf(options), say);
  for (const text of dataset.warnings ?? []) say(`warning: ${inert(text)}`);
  return dataset;
}

function ls(options: Options): number {
  const known = DATASET_ALIASES.map((name) => {
    const location = locateDataset(name, placesOf(options));
    const { files = [], split = null, revision = null } = location.ok ? location.found : {};
    const { repos, says } = KNOWN_DATASETS[name];
    return { name, repository: repos[0], says, path: files[0] ?? null, split, revision };
  });
  const added = Object.entries(addedDatasets(process.env)).map(([name, one]) => {
    const { source, split, revision } = one;
    const path = existsSync(one.path) ? one.path : null;
    return { name, repository: source, says: 'added here', path, split, revision };
  });
  const rows = [...known, ...added];
  const cells = rows.map((r) => [
    inert(r.name),
    inert(r.repository),
    r.path ? (r.split ?? 'yes') : '-',
    r.revision?.slice(0, 12) ?? '-',
  ]);
  printResult(options.json, rows, () => table(['name', 'repository', 'here', 'revision'], cells));
  return EXIT.done;
}

const countBy = (values: readonly string[]): [string, number][] =>
  [...Map.groupBy(values, (value) => value)]
    .map(([value, same]): [string, number] => [value, same.length])
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));

/** Tasks that no run takes, and why. */
const refusedOf = ({ rows }: Dataset) =>
  rows.flatMap((row) =>
    row.refused === undefined ? [] : [{ instance_id: headOf(row).instance_id, reason: row.refused }],
  );

async function show(options: Options): Promise<number> {
  const dataset = await load(options);
  const instances = dataset.rows.map(readInstance);
  const refused = refusedOf(dataset);
  const summary = {
    source: dataset.source,
    files: dataset.files,
    split: dataset.split,
    revision: dataset.revision,
    sha256: dataset.fileHash,
    instances: instances.length,
    with_eval_script: instances.filter((i) => i.eval_script !== undefined).length,
    repositories: Object.fromEntries(countBy(instances.map((i) => i.repo))),
    difficulties: Object.fromEntries(countBy(instances.map((i) => i.difficulty).filter((d) => d !== ''))),
    further_columns: [...new Set(instances.flatMap((i) => Object.keys(i.extra)))].sort(),
    ...(refused.length > 0 && { unsupported: refused }),
    ...(options.ids && { ids: instances.map((i) => i.instance_id) }),
  };
  if (options.json) printJson(summary);
  else if (options.ids) printData(instances.map((i) => i.instance_id).join('\n'));
  else {
    const counts = (record: Record<string, number>) =>
      Object.entries(record).map(([k, n]) => [inert(k), String(n)]);
    printData(
      [
        `${dataset.files.join(', ')}`,
        `${plural(instances.length, 'instance')}, split ${dataset.split ?? '-'}, revision ${dataset.revision ?? 'not known'}`,
        `sha256 ${dataset.fileHash}`,
        '',
        table(['repository', 'instances'], counts(summary.repositories)),
        ...(refused.length > 0
          ? [
              '',
              `${refused.length} of ${instances.length} cannot run here:`,
              table(
                ['instance', 'reason'],
                refused.map(({ instance_id, reason }) => [instance_id, inert(reason)]),
              ),
            ]
          : []),
        ...(Object.keys(summary.difficulties).length
          ? ['', table(['difficulty', 'instances'], counts(summary.difficulties))]
          : []),
      ].join('\n'),
    );
  }
  return EXIT.done;
}

async function pull(options: Options): Promise<number> {
  const { split, revision } = options;
  const source = sourceOf(options);
  if (isTaskAddress(source)) {
    const pinned = await pinTasks(source, { env: process.env, say });
    printResult(options.json, pinned, () => checkText(pinned));
    return EXIT.done;
  }
  const shown = new Map<string, number>();
  const result = await pullDataset(source, {
    access: hubAccess(process.env),
    split,
    revision,
    onWait: (message) => say(inert(message)),
    onProgress: ({ path, size }, bytes) => {
      const tenth = Math.floor((10 * bytes) / size);
      if (shown.get(path) === tenth) return;
      shown.set(path, tenth);
      say(`${inert(path)}: ${tenth * 10} % of ${(size / 1e6).toFixed(1)} MB`);
    },
  });
  if (!result.ok) throw new UserError(inert(result.message));
  const files = result.files.map(
    (f) =>
      `  ${inert(f.path)}  ${(f.bytes / 1e6).toFixed(1)} MB${f.reusedBytes === f.bytes ? '  (already here)' : ''}`,
  );
  printResult(options.json, result, () =>
    [`${result.repo} at ${result.revision}`, ...files, result.snapshot].join('\n'),
  );
  return EXIT.done;
}

/** Checks checksums first, where the cache knows them, because a damaged file mostly cannot be read either. Then checks every row. */
async function verify(options: Options): Promise<number> {
  const location = locateDataset(sourceOf(options), placesOf(options));
  if (!location.ok) throw new UserError(inert(location.message));
  const snapshot = /^.*\/snapshots\/[^/]+/.exec(dirname(location.found.files[0]!))?.[0];
  const files = snapshot === undefined ? [] : await verifySnapshot(snapshot);
  const bad = files.filter((file) => !file.ok);
  const dataset = bad.length > 0 ? undefined : await load(options);
  const result = {
    instances: dataset?.rows.length ?? null,
    sha256: dataset?.fileHash ?? null,
    revision: location.found.revision,
    files,
  };
  if (options.json) printJson(result);
  else {
    for (const file of files) printData(`${file.ok ? 'ok  ' : 'BAD '} ${file.path}: ${file.message}`);
    if (dataset) printData(`${plural(dataset.rows.length, 'row')} well formed; sha256 ${dataset.fileHash}`);
    if (files.length === 0) say('no checksum is known for these files: they are not in the hub cache');
  }
  if (bad.length > 0)
    say(
      `${bad.length === 1 ? '1 file is' : `${bad.length} files are`} damaged; fetch ${bad.length === 1 ? 'it' : 'them'} again with "swebatch datasets pull"`,
    );
  return bad.length > 0 ? EXIT.gate : EXIT.done;
}

async function convert(options: Options): Promise<number> {
  const form = extname(options.out ?? '').slice(1);
  if (form !== 'jsonl' && form !== 'json')
    throw new UserError('datasets convert writes a .jsonl or .json file', {
      hint: 'for example: swebatch datasets convert lite lite.jsonl',
    });
  if (existsSync(options.out!))
    throw new UserError(`${options.out} exists already`, { hint: 'name another file' });
  const dataset = await load(options);
  if (dataset.needsFolders)
    throw new UserError(`${dataset.path} holds task folders, which cannot be written as rows`);
  const text = datasetText(dataset.rows.map(readInstance), form);
  await writeFile(options.out!, text, { flag: 'wx' });
  say(`wrote ${plural(dataset.rows.length, 'instance')} to ${options.out}`);
  return EXIT.done;
}

async function add(options: Options): Promise<number> {
  const { split, revision, dataDir, images } = options;
  const places = { split, revision, dataDir, images, env: process.env };
  const added = await addDataset({ source: sourceOf(options), ...places }, say);
  printResult(options.json, added, () => checkText(added));
  say(`added: --subset ${added.name} takes it as it is now`);
  return EXIT.done;
}

/** Exit 1 when something will not run or cannot be graded. */
async function check(options: Options): Promise<number> {
  const found = await checkDatasetHere(await load(options), standingsIn(resultsRoot(options.output)));
  printResult(options.json, found, () => checkText(found));
  return found.unfit.length > 0 ? EXIT.gate : EXIT.done;
}

/** Results of earlier calibrations of a results root; nothing where there is none. */
function standingsIn(root: string): readonly Calibrated[] {
  if (!existsSync(databasePath(root))) return [];
  using store = openForReading(root);
  return [...goldStandings(store).values()];
}

const ACTIONS: Readonly<Record<Options['action'], (options: Options) => number | Promise<number>>> = {
  ls,
  show,
  add,
  check,
  pull,
  verify,
  convert,
};

export const datasetsVerb = defineVerb({
  name: 'datasets',
  describe: 'list, show, add, fetch, check and convert datasets',
  flags: datasetsFlags,
  examples: [
    ['$0 datasets pull verified', 'fetch into the Hugging Face cache, pinned to a commit'],
    ['$0 datasets add ../SWE-bench_Pro-os', 'say what is in it, and take it as --subset SWE-bench_Pro-os'],
    ['$0 datasets add SWE-Gym/SWE-Gym --images swe-gym', 'with the images that their builder named'],
    ['$0 datasets check verified', 'what will not run or cannot be graded, and why'],
    ['$0 datasets show lite --split dev --ids', 'the ids of a split'],
  ],
  run: async (args) => ACTIONS[args.action](args),
});

const SHOWN = 20;

/** One line for each reason, however many instances have it. */
function reasons(unfit: readonly Unfit[]): string[] {
  const groups = [...Map.groupBy(unfit, ({ what, why }) => `${what}\n${why}`).values()];
  const rows = groups
    .sort((a, b) => b.length - a.length)
    .map((group) => [
      String(group.length),
      group[0]!.what,
      inert(group[0]!.why),
      inert(group[0]!.instance_id),
    ]);
  const more = rows.length - SHOWN;
  return [
    '',
    table(['instances', 'what', 'why', 'such as'], rows.slice(0, SHOWN)),
    ...(more > 0 ? [`and ${more} more reasons; --json has all of them`] : []),
  ];
}

/** Which tasks cannot be solved here, and which pass untouched. */
function oracleLines({ passes, tried, others }: NonNullable<CheckedDataset['oracle']>): string[] {
  const rows = others.map(({ instance_id, standing, why }) => [
    inert(instance_id),
    standing,
    inert((why ?? '').slice(0, 200)),
  ]);
  const more = rows.length - SHOWN;
  return [
    `the solution passes here for ${passes} of the ${tried} that were tried`,
    ...(rows.length > 0 ? ['', table(['instance', 'solution', 'why'], rows.slice(0, SHOWN))] : []),
    ...(more > 0 ? [`and ${more} more; --json has all of them`] : []),
  ];
}

/** '' where all or none can be. */
const shareOf = ({ gradable, instances }: CheckedDataset): string =>
  gradable > 0 && gradable < instances ? ` (${((100 * gradable) / instances).toFixed(1)} %)` : '';

const wantedText = (wants: Readonly<Record<string, number>>): string =>
  Object.entries(wants)
    .map(([what, count]) => `${inert(what)} (${count})`)
    .join(', ');

const checkText = (found: CheckedDataset): string =>
  [
    `${inert(found.path)}`,
    `${plural(found.instances, 'instance')}: ${Object.entries(found.kinds)
      .map(([kind, count]) => `${count} ${inert(kind)}`)
      .join(', ')}`,
    `${found.gradable} can be graded${shareOf(found)}; ${plural(found.images, 'image')}`,
    ...(found.wants ? [`wanted of this machine: ${wantedText(found.wants)}`] : []),
    `licence ${found.licence === null ? 'not stated' : inert(found.licence)}; revision ${found.revision ?? 'not known'}; sha256 ${found.sha256}`,
    ...(found.oracle ? oracleLines(found.oracle) : []),
    ...(found.unfit.length > 0 ? reasons(found.unfit) : []),
  ].join('\n');
