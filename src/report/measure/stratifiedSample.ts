/** The estimate for a whole dataset from a run of a sample of it. */
import type { StoredManifest } from '../../store/records/runs.ts';
import { mean, sum } from '../statistics/means.ts';
import { type StratifiedEstimate, type StratumResult, stratifiedEstimate } from '../statistics/stratified.ts';
import type { ScoredTrial } from './score.ts';

/** Only where the manifest says that the selection was a sample. A weight is how many instances of the stratum one stands for. */
export function stratifiedOf(
  rows: readonly ScoredTrial[],
  manifest: StoredManifest,
): StratifiedEstimate | null {
  const fields = sampleFields(manifest);
  if (!fields) return null;
  // Epochs repeat an instance, which counts once, with its mean.
  const instances = [...Map.groupBy(rows, (r) => r.trial.instanceId).values()];
  const groups = Map.groupBy(
    instances,
    ([first]) => fields.map((f) => fieldOf(first!, f)).join(' / ') || '(all)',
  );
  return stratifiedEstimate([
    ...[...groups].map(([key, members]) => {
      const means = members
        .map((m) => m.filter((r) => r.valid).map((r) => (r.resolved ? 1 : 0)))
        .filter((scores) => scores.length > 0)
        .map(mean);
      return {
        key,
        size: Math.round(members.reduce((s, [first]) => s + first!.trial.weight, 0)),
        n: means.length,
        resolved: sum(means),
      };
    }),
    ...unsampled(manifest),
  ]);
}

/** Strata of the dataset that the sample holds nothing of: the estimate must name them. */
function unsampled(manifest: StoredManifest): StratumResult[] {
  const strata = manifest.dataset?.strata;
  const known = (Array.isArray(strata) ? strata : []) as { key: string[]; size: number; sampled: number }[];
  return known
    .filter((s) => s.sampled === 0)
    .map((s) => ({ key: s.key.join(' / '), size: s.size, n: 0, resolved: 0 }));
}

/** A column that the record does not keep still has its weight, which is the same within a stratum. */
const fieldOf = ({ trial }: ScoredTrial, field: string): string =>
  field === 'repo' ? trial.repo : field === 'difficulty' ? trial.difficulty : `weight ${trial.weight}`;

/** `selection.sample` and `selection.stratify` of run.json; null when the selection was not a sample. */
function sampleFields(manifest: StoredManifest): string[] | null {
  const { selection } = manifest;
  if (typeof selection?.sample !== 'number') return null;
  const { stratify } = selection;
  const fields = typeof stratify === 'string' ? stratify.split(',') : Array.isArray(stratify) ? stratify : [];
  return fields.map((f) => String(f).trim()).filter(Boolean);
}
