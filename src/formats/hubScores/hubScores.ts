/**
 * Results as the Hugging Face Hub keeps them beside a model: `.eval_results/*.yaml` (https://huggingface.co/docs/hub/eval-results). A file holds rates
 * and no instances, so it can be read as figures, and not as a run.
 */
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { pathName } from '../../base/text/fileName.ts';
import type { WrittenArm, WrittenFile, WrittenRun } from '../writtenRun.ts';

const schema = z.array(
  z.looseObject({
    dataset: z.looseObject({ id: z.string().min(1), revision: z.string().nullish() }),
    value: z.number(),
    date: z.unknown().optional(),
    notes: z.string().nullish(),
  }),
);

export function* writeEvalResults(run: WrittenRun): Generator<WrittenFile> {
  for (const arm of run.arms) {
    if (arm.score === null) continue;
    const name = run.arms.length === 1 ? run.name : `${run.name}_${arm.name}`;
    yield {
      path: `.eval_results/${pathName(name)}.yaml`,
      content: stringify([entryOf(run, arm, arm.score)]),
    };
  }
}

/** The Hub's scores are percentages; our own digits stay, so that what is read again is what was written. */
function entryOf(run: WrittenRun, arm: WrittenArm, { mean, n }: NonNullable<WrittenArm['score']>) {
  return {
    dataset: {
      id: run.dataset.repo ?? run.dataset.source,
      ...(run.dataset.revision !== null && { revision: run.dataset.revision }),
    },
    value: 100 * mean,
    date: (run.finishedAt ?? run.createdAt).slice(0, 10),
    notes: `${arm.model}, agent ${arm.agent}: mean of ${n} of ${run.ids.length} instances, ${run.epochs} epoch(s); swebatch ${run.version}, run ${run.name}, rows ${run.dataset.hash}`,
  };
}

/** Throws an Error for text that is none. */
export const readEvalResults = (text: string) =>
  schema.parse(parse(text)).map(({ dataset, value, notes }) => ({
    dataset: dataset.id,
    revision: dataset.revision ?? null,
    resolved: value / 100,
    notes: notes ?? null,
  }));
