/** How the number that Inspect printed comes to be, and what the same samples come to here. */
import { inspectScore } from '../../formats/reports/inspectLog.ts';
import type { InspectLog } from './inspectSamples.ts';
import { scoreNameOf, scoreOf } from './inspectSamples.ts';

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

const RATES = ['mean', 'accuracy'];

/** Of the score that the verdicts are read from. */
function printedBy({
  header,
  samples,
}: InspectLog): { readonly name: string; readonly value: number } | null {
  const name = samples.map((sample) => scoreNameOf(header, sample)).find((each) => each !== null);
  const score = header.results?.scores.find((each) => each.name === name) ?? header.results?.scores[0];
  for (const metric of RATES) {
    const value = inspectScore(
      Object.values(score?.metrics ?? {}).find((each) => each.name.endsWith(metric))?.value,
    );
    if (value !== null) return { name: metric, value };
  }
  return null;
}

export function inspectDifference(log: InspectLog): string[] {
  const { header, samples } = log;
  const lost = samples.filter((sample) => sample.error || scoreOf(header, sample).value === null);
  const measured = samples.filter((sample) => !lost.includes(sample));
  const solved = measured.map((sample) => (scoreOf(header, sample).value! >= 1 ? 1 : 0));
  const bySample = [...Map.groupBy(measured, ({ id }) => id).values()].map((group) =>
    mean(group.map((sample) => scoreOf(header, sample).value!)),
  );
  const ours = mean(bySample);
  const printed = printedBy(log);
  const ids = new Set(header.eval.dataset.sample_ids ?? samples.map(({ id }) => id));
  const planned = ids.size * (header.eval.config.epochs ?? 1);
  const absent = Math.max(0, planned - samples.length);
  const lines: string[] = [];
  if (printed)
    lines.push(
      `Inspect's ${printed.name} is ${printed.value.toFixed(3)} over the samples that have a score, epochs averaged; here it is ${ours.toFixed(3)} over ${bySample.length} samples (${signed(ours - printed.value)}), and ${solved.filter((one) => one === 1).length} of ${measured.length} trials are resolved`,
    );
  else
    lines.push(
      `the log holds no number of Inspect's own${header.status === 'success' ? '' : `: its status is ${header.status}`}`,
    );
  if (lost.length + absent > 0) lines.push(missingLine(lost, absent, planned));
  return lines;
}

const signed = (value: number): string =>
  Math.abs(value) < 0.0005 ? 'no difference' : `${value > 0 ? '+' : ''}${value.toFixed(3)}`;

function missingLine(lost: InspectLog['samples'], absent: number, planned: number): string {
  const names = lost
    .slice(0, 5)
    .map(
      ({ id, epoch, error }) =>
        `${id}, epoch ${epoch} (${error ? (error.message.split('\n')[0] ?? '').slice(0, 60) : 'no score'})`,
    );
  const parts = [
    ...(lost.length > 0 ? [`${lost.length} that ended by an error or without a score`] : []),
    ...(absent > 0 ? [`${absent} that never ran`] : []),
  ];
  return `missing of ${planned} trials: ${parts.join(', ')}. Inspect leaves them out of its number without a word${names.length > 0 ? `: ${names.join('; ')}${lost.length > 5 ? '; …' : ''}` : ''}`;
}
