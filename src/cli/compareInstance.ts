/** `compare A B --instance ID`: two trajectories of one instance beside each other, from the same documents as the page. */
import { existsSync } from 'node:fs';
import { openForeignRun } from '../results/compare/foreignSides.ts';
import { type NamedSide, sidesOf } from '../results/compare/sides.ts';
import { UserError } from '../run/userError.ts';
import type { Store } from '../store/open.ts';
import { viewerQueries } from '../store/records/viewerQueries.ts';
import type { AttemptDocument, EvaluationDocument, HistoryRow } from '../viewer/documents/documents.ts';
import { createDocuments } from '../viewer/documents/resources.ts';
import { sideName } from '../viewer/steps/alignedAttempts.ts';
import { alignedData, alignedDocument, type ReportedSide } from '../viewer/steps/alignedReport.ts';
import { putDocument } from './terminal/putDocument.ts';
import { thisProcess } from './terminal/thisProcess.ts';

interface Asked {
  readonly found: NamedSide;
  readonly epoch: number | undefined;
  readonly label: string;
  /** Of the results root that holds the attempt. */
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
      ...{ found, epoch, label: found.side.label, store: place.store },
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
  const documents = createDocuments(viewerQueries(store()), { title: '' });
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

export async function compareInstance(
  args: Parameters<typeof putDocument>[0] & { readonly sides: readonly string[] },
  instance: string,
  root: string,
  store: () => Store,
): Promise<void> {
  using opened = new DisposableStack();
  const place = { root, store, caller: thisProcess() };
  const asked = await askedSides(args.sides, place, opened);
  const [a, b] = asked.map((side) => sideOf(instance, side)) as [ReportedSide, ReportedSide];
  await putDocument(args, `${instance}: two trajectories`, alignedData(a, b), () => alignedDocument(a, b));
}
