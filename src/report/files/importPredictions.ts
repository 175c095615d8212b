/** The predictions of a folder that is imported: preds.json or all_preds.jsonl, whole or damaged. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const predictionSchema = z.looseObject({
  model_name_or_path: z.string().default('unknown'),
  instance_id: z.string().min(1),
  model_patch: z.string().nullable().default(''),
});
/** As preds.json has them, by id; the harness takes a list too. */
const predictionsSchema = z.union([
  z.array(z.looseObject({})),
  z
    .record(z.string(), z.looseObject({}))
    .transform((byId) => Object.entries(byId).map(([instance_id, row]) => ({ instance_id, ...row }))),
]);

export type Prediction = z.infer<typeof predictionSchema>;

export const issueOf = (error: z.ZodError): string => {
  const [issue] = error.issues;
  return issue ? `${issue.path.join('.') || 'the file'}: ${issue.message}` : 'unreadable';
};

/** A process that died while it wrote leaves half a file: what else is there is imported, and the person is told. */
export function readPredictions(folder: string, warnings: string[]): Map<string, Prediction> {
  const path = join(folder, 'preds.json');
  // A leaderboard entry holds one of the two.
  const lines = join(folder, 'all_preds.jsonl');
  const rows = existsSync(path)
    ? rowsOfJson(path, warnings)
    : existsSync(lines)
      ? readFileSync(lines, 'utf8')
          .split('\n')
          .flatMap((line, i) => (line.trim() === '' ? [] : rowOfLine(line, `${lines}:${i + 1}`, warnings)))
      : [];
  const predictions = new Map<string, Prediction>();
  for (const row of rows) {
    const parsed = predictionSchema.safeParse(row);
    if (!parsed.success) warnings.push(`a prediction cannot be used: ${issueOf(parsed.error)}`);
    else if (predictions.has(parsed.data.instance_id))
      warnings.push(`${parsed.data.instance_id} has several predictions; the first is taken`);
    else predictions.set(parsed.data.instance_id, parsed.data);
  }
  return predictions;
}

function rowsOfJson(path: string, warnings: string[]): readonly unknown[] {
  try {
    return predictionsSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const why = error instanceof z.ZodError ? issueOf(error) : (error as Error).message;
    warnings.push(`${path} cannot be read (${why}): the submissions of the trajectories are taken instead`);
    return [];
  }
}

function rowOfLine(line: string, where: string, warnings: string[]): unknown[] {
  try {
    return [JSON.parse(line)];
  } catch (error) {
    warnings.push(`${where} cannot be read: ${(error as Error).message}`);
    return [];
  }
}
