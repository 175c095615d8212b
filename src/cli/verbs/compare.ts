/** `swebatch compare A B [C...]`: the same instances, paired; with --gate a verdict and an exit code for a night. */
import { existsSync } from 'node:fs';
import { pathInside } from '../../base/files/pathInside.ts';
import { MOST } from '../../base/plausible.ts';
import { inert } from '../../base/text/inert.ts';
import { compareDocument, configDocument } from '../../report/compare/compareDocument.ts';
import { compareAll } from '../../report/compare/compareSides.ts';
import { gateDocument } from '../../report/gate/gateDocument.ts';
import { conditionsOf, recordDifferences } from '../../report/measure/runFacts.ts';
import { RESAMPLING_SEED } from '../../report/measure/summary.ts';
import type { McNemarTest } from '../../report/statistics/paired.ts';
import {
  fixedTest,
  foreignSides,
  type NamedSide,
  namedSides,
  openForeignRun,
  sidesOf,
} from '../../results/compareSources.ts';
import { runGate, writeArtifacts } from '../../results/night/gateRun.ts';
import { remeasure } from '../../results/night/judgeRun.ts';
import { idsMeant, requireInstances } from '../../run/namedTrials.ts';
import { databasePath, lazyStore, resultsRoot } from '../../run/resultsRoot.ts';
import type { RunOutcome } from '../../run/run.ts';
import { UserError } from '../../run/userError.ts';
import { openStore, StorageError, type Store } from '../../store/open.ts';
import { instanceIdsOf } from '../../store/records/runs.ts';
import type { AttemptDocument, EvaluationDocument } from '../../viewer/documents/attemptDocuments.ts';
import { createDocuments } from '../../viewer/documents/resources.ts';
import type { HistoryRow } from '../../viewer/documents/trialDocuments.ts';
import { sideName } from '../../viewer/steps/alignedAttempts.ts';
import { alignedData, alignedDocument, type ReportedSide } from '../../viewer/steps/alignedReport.ts';
import { conclude, sayJudged, sayUnconfirmed } from '../conclude.ts';
import { filledText, integer } from '../flags/checks.ts';
import { gateFlags, policyOf } from '../flags/runFlags.ts';
import {
  type Args,
  defineVerb,
  flags,
  format,
  json,
  oneOf,
  output,
  string,
  to,
  toggle,
} from '../flags/verb.ts';
import { EXIT, say, sayNotice } from '../terminal/context.ts';
import { putDocument } from '../terminal/putDocument.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

const compareFlags = flags({
  sides: {
    ...string(
      'RUN, RUN/ARM, baseline[:NAME], or a file or folder of another runner; the first is the reference',
    ),
    place: 'required',
    list: true,
  },
  output,
  format,
  to,
  test: oneOf(['exact', 'mid-p'], 'McNemar test; default: the one fixed in the manifest, else exact'),
  seed: integer(0, 'seed for permutations and bootstraps', Number.MAX_SAFE_INTEGER),
  instance: filledText(
    'lay the trajectories of this instance (id, or a unique part of it) beside each other; sides may be RUN@EPOCH or PATH@EPOCH',
  ),
  config: toggle('compare only the configurations of the two runs'),
  gate: toggle('judge the last run; exit 1 if it regressed'),
  remeasure: integer(
    0,
    'with --gate: run what newly broke (and, where much did, what got fixed) again this many times before the verdict',
    MOST.repeats,
  ),
  artifacts: string(
    "with --gate: folder for gate.json, junit.xml, summaries; default: the last run's folder",
  ),
  json,
  ...gateFlags,
});
type CompareArgs = Args<typeof compareFlags>;

const TITLE = 'Comparison';

export const compareVerb = defineVerb({
  name: 'compare',
  describe: 'compare runs, arms, and results of other runners on the same instances',
  flags: compareFlags,
  examples: [
    ['$0 compare nightly-0821 nightly-0822', 'what changed'],
    ['$0 compare baseline last --gate --max-drop 2% --remeasure 3', 'exit 1 if it regressed'],
    ['$0 compare a.json b.json --json', "the harness's own run reports"],
    ['$0 compare nightly-0822 logs/2026-01-31_swe-bench.eval', 'a run and a log of Inspect'],
    ['$0 compare r1 r2 --instance django__django-11095', 'where two trajectories part'],
    ['$0 compare r1 r2 --config', 'only the configuration'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    using store = lazyStore(root);
    if (args.instance !== undefined) {
      await compareInstance(args, args.instance, root, store.get);
      return EXIT.done;
    }
    const foreign = await foreignSides(args.sides, { root, store: store.get, caller: thisProcess() });
    const sides = namedSides(args.sides, root, store.get, foreign);
    sayWhenSame(sides);
    if (args.config) return await compareConfig(args, sides);
    if (args.gate) return await gateSides(args, root, sides);
    refuseUngraded(sides, root);
    const all = compareAll(
      sides.map((s) => s.side),
      { test: testOf(args, sides), seed: args.seed ?? RESAMPLING_SEED },
    );
    const [only] = all.comparisons;
    // With two sides the comparison is the answer; with more, a list of pairs.
    const json = all.comparisons.length === 1 ? { sides: all.sides, ...only! } : all;
    await putDocument(args, TITLE, { schema_version: 1, ...json }, () => compareDocument(all));
    return EXIT.done;
  },
});

/** Nothing can differ then, and a person who sees no difference would believe that two runs agree. */
function sayWhenSame(sides: readonly NamedSide[]): void {
  const names = sides.flatMap(({ from }) => (from ? `${from.run.name}/${from.arm}` : []));
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined)
    say(
      `warning: ${inert(twice)} is compared with itself; name another run, or RUN/ARM for the arms of one run`,
    );
}

/** A table of dashes would look like an answer. */
function refuseUngraded(sides: readonly NamedSide[], root: string): void {
  const ungraded = sides.filter(({ side }) => {
    const results = [...side.results.values()];
    return (
      results.some(({ why }) => why === 'not_graded') && results.every(({ scores }) => scores.length === 0)
    );
  });
  const [first] = ungraded;
  if (!first) return;
  const labels = ungraded.map(({ side }) => inert(side.label)).join(' and ');
  throw new UserError(
    `${labels} ${ungraded.length > 1 ? 'are' : 'is'} not graded: there is no verdict to compare`,
    first.from ? { next: { do: 'grade_run', results: root, run: first.from.run.name } } : {},
  );
}

/** Fixed before the run, because the choice can flip a verdict; another one chosen afterwards gets a warning. */
function testOf(args: CompareArgs, sides: readonly NamedSide[]): McNemarTest {
  const fixed = sides.flatMap((s) => fixedTest(s) ?? []);
  const named = fixed.at(-1) ?? 'exact';
  if (args.test && fixed.length > 0 && args.test !== named)
    say(
      `warning: the manifest fixed the ${named} McNemar test before the run; ${args.test} was chosen after it`,
    );
  return args.test ?? named;
}

async function compareConfig(args: CompareArgs, sides: readonly NamedSide[]): Promise<number> {
  const [a, b] = sides;
  if (!a?.from || !b?.from || sides.length !== 2)
    throw new UserError('--config compares two runs of this results root');
  const manifestOf = ({ from }: NamedSide): unknown => conditionsOf(from!.data, from!.arm);
  const differences = recordDifferences(manifestOf(a), manifestOf(b));
  const labels = { a: a.side.label, b: b.side.label };
  await putDocument(args, TITLE, { schema_version: 1, ...labels, differences }, () =>
    configDocument(labels.a, labels.b, differences),
  );
  return EXIT.done;
}

async function gateSides(args: CompareArgs, root: string, sides: readonly NamedSide[]): Promise<number> {
  const [a, b] = sides;
  if (!a || !b || sides.length !== 2)
    throw new UserError('--gate judges one run against one other', { hint: 'name an arm as RUN/ARM' });
  const repeats = args.remeasure ?? 0;
  // A comparison of files alone needs no database.
  using store = a.from || b.from ? openForVerdict(root, b.from !== null) : undefined;
  const gated = await runGate({
    a,
    b,
    policy: { ...policyOf(args), again: repeats },
    test: testOf(args, sides),
    seed: args.seed ?? RESAMPLING_SEED,
    tell: sayNotice,
    ...(store ? { store, record: !store.readonly } : {}),
    ...(repeats > 0
      ? {
          remeasure: async (ids: readonly string[]) => {
            if (!store || !b.from) return;
            const { run, arm } = b.from;
            const ended = (outcome: RunOutcome) => void conclude(outcome, false);
            await remeasure({ store, root, run, arm, ids, epochs: repeats, ended }, thisProcess());
          },
        }
      : {}),
  });
  const { comparison, result, past, exitCode } = gated;
  const all = {
    sides: [a.side.label, b.side.label],
    comparisons: [{ ...comparison, pHolm: null }],
    omnibus: null,
  };
  await putDocument(args, TITLE, { schema_version: 1, gate: { ...result, past }, ...comparison }, () => [
    ...gateDocument(result, { a: a.side.label, b: b.side.label }, past),
    ...compareDocument(all),
  ]);
  const folder = args.artifacts ?? (b.from ? pathInside(root, b.from.run.name) : undefined);
  sayJudged(result, a.side.label, folder ? await writeArtifacts(folder, b, gated, process.env) : []);
  if (exitCode === EXIT.incomplete) sayUnconfirmed(result);
  return exitCode;
}

/** The verdict about a run is recorded with it. Where nothing can be written, the run is judged all the same. */
function openForVerdict(root: string, record: boolean): Store {
  const path = databasePath(root);
  if (!record) return openStore(path, { readonly: true });
  try {
    return openStore(path);
  } catch (error) {
    if (!(error instanceof StorageError) || error.code !== 'write_failed') throw error;
    say(`warning: the verdict is not recorded: ${error.message}`);
    return openStore(path, { readonly: true });
  }
}

interface Asked {
  readonly found: NamedSide;
  readonly epoch: number | undefined;
  readonly label: string;
  /** The documents of the results root that holds the attempt. */
  readonly store: () => Store;
}

type Place = Parameters<typeof openForeignRun>[1];

/** A folder of another runner is a results root of its own; it stays open as long as `opened`. */
async function askedOf(selector: string, place: Place, opened: DisposableStack): Promise<Asked[]> {
  // RUN@2 is the second epoch of a run, unless a file has that name.
  const match = existsSync(selector) ? null : /^(.+)@(\d{1,6})$/.exec(selector);
  const epoch = match ? Number(match[2]) : undefined;
  const name = match?.[1] ?? selector;
  const foreign = await openForeignRun(name, place);
  if (!foreign)
    return sidesOf(name, place.root, place.store).map((found) => ({
      found,
      epoch,
      label: found.side.label,
      store: place.store,
    }));
  const store = opened.use(foreign.store);
  // Folders of other runners often share a name.
  const label = foreign.sides.length === 1 ? () => name : ({ arm }: { arm: string }) => `${name}/${arm}`;
  return foreign.sides.map((found) => ({ found, epoch, label: label(found.from!), store: () => store }));
}

async function askedSides(
  selectors: readonly string[],
  place: Place,
  opened: DisposableStack,
): Promise<[Asked, Asked]> {
  const sides: Asked[] = [];
  for (const selector of selectors) sides.push(...(await askedOf(selector, place, opened)));
  const [a, b] = sides;
  if (!a || !b || sides.length !== 2)
    throw new UserError('--instance lays two trajectories beside each other', {
      hint: 'name two of RUN, RUN/ARM, RUN@EPOCH, or a folder of another runner with one arm; one run with two arms is enough',
    });
  return [a, b];
}

function sideOf(instance: string, { found, epoch, store, ...asked }: Asked): ReportedSide {
  const { from } = found;
  if (!from) throw new UserError(`${asked.label} holds verdicts alone, no trajectories`);
  const documents = createDocuments(store(), { title: '' });
  const all = documents.read(`history/${instance}`) as HistoryRow[] | undefined;
  if (!all) throw new UserError(`no run here has an instance "${instance}"`);
  const row = all.find(
    (one) =>
      one.run === from.run.name &&
      one.arm === from.arm &&
      (epoch === undefined || one.epoch === epoch) &&
      one.attempt !== null,
  );
  const label = epoch === undefined ? asked.label : `${asked.label}@${epoch}`;
  if (!row)
    throw new UserError(`${label} has no attempt at ${instance}`, {
      hint: `these have: ${all.flatMap((one) => (one.attempt === null ? [] : sideName(one, all))).join(', ') || 'none'}`,
    });
  const doc = documents.read(`attempts/${row.attempt}`) as AttemptDocument;
  const current = doc.evaluations.findLast((evaluation) => evaluation.current);
  return {
    label,
    doc,
    verdict: current && (documents.read(`evaluations/${current.id}`) as EvaluationDocument),
  };
}

/** A part of an id is enough; undefined where the run of this side has none such. */
function meantBy(word: string, { found: { from }, store }: Asked): string | undefined {
  if (!from) return undefined;
  if (idsMeant(word, new Set(instanceIdsOf(store(), from.run.id))).length === 0) return undefined;
  return requireInstances(store(), from.run, [word])[0];
}

async function compareInstance(
  args: Parameters<typeof putDocument>[0] & { readonly sides: readonly string[] },
  instance: string,
  root: string,
  store: () => Store,
): Promise<void> {
  using opened = new DisposableStack();
  const place = { root, store, caller: thisProcess() };
  const asked = await askedSides(args.sides, place, opened);
  const meant = asked.map((side) => meantBy(instance, side)).find((id) => id !== undefined);
  if (meant === undefined) throw new UserError(`no run here has an instance "${instance}"`);
  const [a, b] = asked.map((side) => sideOf(meant, side)) as [ReportedSide, ReportedSide];
  await putDocument(args, `${meant}: two trajectories`, alignedData(a, b), () => alignedDocument(a, b));
}
