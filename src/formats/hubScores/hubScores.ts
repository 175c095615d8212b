/**
 * Results as the Hugging Face Hub keeps them beside a model: `.eval_results/*.yaml` (https://huggingface.co/docs/hub/eval-results). A file holds
 * rates and no instances, so it can be read as figures, and not as a run.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { pathName } from '../../base/text/fileName.ts';
import { percent } from '../../base/text/numbers.ts';
import { listingOf } from '../foreignFile.ts';
import type { ForeignFormat } from '../foreignFormat.ts';
import { SourceError } from '../sourceError.ts';
import type { WrittenArm, WrittenFile, WrittenRun } from '../writtenRun.ts';

const schema = z.array(
  z.looseObject({
    dataset: z.looseObject({
      id: z.string().min(1),
      task_id: z.string().nullish(),
      revision: z.string().nullish(),
    }),
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

/** The Hub's own example of a benchmark with one task. */
const ONLY_TASK = 'default';

/** The Hub's scores are percentages; our own digits stay, so that what is read again is what was written. */
function entryOf(run: WrittenRun, arm: WrittenArm, { mean, n }: NonNullable<WrittenArm['score']>) {
  return {
    dataset: {
      id: run.dataset.repo ?? run.dataset.source,
      // Required there: as the eval.yaml of the dataset names it.
      task_id: ONLY_TASK,
      ...(run.dataset.revision !== null && { revision: run.dataset.revision }),
    },
    value: 100 * mean,
    date: (run.finishedAt ?? run.createdAt).slice(0, 10),
    notes: `${arm.model}, agent ${arm.agent}: mean of ${n} of ${run.ids.length} instances, ${run.epochs} epoch(s); swebatch ${run.version}, run ${run.name}, rows ${run.dataset.hash}`,
  };
}

const FOLDER = '.eval_results';
const isFile = (name: string, head: string): boolean => /\.ya?ml$/.test(name) && /^- dataset:/.test(head);

/** The files of a model's folder, or of its folder of results. */
const filesOf = (name: string, files: readonly string[]): string[] =>
  files.filter((file) => dirname(file) === (name === FOLDER ? '.' : FOLDER) && /\.ya?ml$/.test(file));

/** Rates can be told; a run, which is compared instance by instance, cannot be made of them. */
export const hubScores: ForeignFormat = {
  recognise({ name, files, head }) {
    const is =
      files === null ? isFile(name, head('')) : filesOf(name, files).some((file) => isFile(file, head(file)));
    return is
      ? {
          words: 'rates as the Hugging Face Hub keeps them',
          certain: 'sure',
          reads: files ? 'below' : 'itself',
        }
      : null;
  },
  read(source) {
    const { name, files } = listingOf(source)!;
    const paths =
      files === null
        ? [source]
        : filesOf(name, files)
            .sort()
            .map((file) => join(source, file));
    const told = paths
      .flatMap((path) => readEvalResults(readFileSync(path, 'utf8')))
      .map(({ dataset, resolved, notes }) =>
        [`${dataset}: ${percent(resolved)}`, ...(notes === null ? [] : [notes])].join(' · '),
      );
    throw new SourceError(
      `${source} holds rates and no instances, so it is no run:\n${told.map((line) => `  ${line}`).join('\n')}`,
      '"export RUN inspect" and "export RUN harbor" write results that can be compared',
    );
  },
};

/** Throws a SourceError for text that is none. */
export function readEvalResults(text: string) {
  try {
    return schema.parse(parse(text)).map(({ dataset, value, notes }) => ({
      dataset: dataset.id,
      revision: dataset.revision ?? null,
      resolved: value / 100,
      notes: notes ?? null,
    }));
  } catch (error) {
    throw new SourceError(`these are no .eval_results of the Hugging Face Hub: ${(error as Error).message}`);
  }
}
