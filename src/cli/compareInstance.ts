/** `compare A B --instance ID`: two trajectories of one instance beside each other, from the same documents as the page. */
import { type NamedSide, sidesOf } from '../service/compare/sides.ts';
import { UserError } from '../service/userError.ts';
import type { Store } from '../store/open.ts';
import { viewerQueries } from '../store/records/viewerQueries.ts';
import type { AttemptDocument, EvaluationDocument, HistoryRow } from '../viewer/documents/documents.ts';
import { createDocuments, type Documents } from '../viewer/documents/resources.ts';
import { sideName } from '../viewer/steps/alignedAttempts.ts';
import { alignedData, alignedDocument, type ReportedSide } from '../viewer/steps/alignedReport.ts';
import { putDocument } from './terminal/putDocument.ts';

interface Asked {
  readonly found: NamedSide;
  readonly epoch: number | undefined;
}

/** RUN@2 is the second epoch of a run. */
function askedSides(selectors: readonly string[], root: string, store: () => Store): [Asked, Asked] {
  const sides = selectors.flatMap((selector) => {
    const epoch = /^(.+)@(\d{1,6})$/.exec(selector);
    return sidesOf(epoch?.[1] ?? selector, root, store).map((found) => ({
      found,
      epoch: epoch ? Number(epoch[2]) : undefined,
    }));
  });
  const [a, b] = sides;
  if (!a || !b || sides.length !== 2)
    throw new UserError('--instance lays two trajectories beside each other', {
      hint: 'name two of RUN, RUN/ARM, RUN@EPOCH; one run with two arms is enough',
    });
  return [a, b];
}

function sideOf(documents: Documents, instance: string, { found, epoch }: Asked): ReportedSide {
  const { from, side } = found;
  if (!from)
    throw new UserError(`${side.label} is a file and holds no trajectories`, { hint: 'import it first' });
  const all = documents.read(`history/${instance}`) as HistoryRow[] | undefined;
  if (!all) throw new UserError(`no run here has an instance "${instance}"`);
  const row = all.find(
    (one) =>
      one.run === from.run.name &&
      one.arm === from.arm &&
      (epoch === undefined || one.epoch === epoch) &&
      one.attempt !== null,
  );
  const label = epoch === undefined ? side.label : `${side.label}@${epoch}`;
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
  const asked = askedSides(args.sides, root, store);
  const documents = createDocuments(viewerQueries(store()), { title: '' });
  const [a, b] = asked.map((side) => sideOf(documents, instance, side)) as [ReportedSide, ReportedSide];
  await putDocument(args, `${instance}: two trajectories`, alignedData(a, b), () => alignedDocument(a, b));
}
