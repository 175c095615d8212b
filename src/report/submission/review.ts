/** Whether a run may be submitted: its counts reconcile, every instance has a patch and a verdict, and the model that was asked for answered. */

import { z } from 'zod';
import { compact } from '../../base/compact.ts';
import { stripChars } from '../../base/python/text.ts';
import { plural } from '../../base/text/numbers.ts';
import type { RunData } from '../../store/records/runData.ts';
import { type Missing, type ScoredTrial, scoredTrials } from '../measure/score.ts';

interface ReviewInput {
  readonly data: RunData;
  readonly arm: string;
  /** Instances with an earlier attempt that already was a result. */
  readonly redone: readonly string[];
  readonly acceptModelChange?: boolean;
}

export type Review = ReturnType<typeof reviewSubmission>;

export function reviewSubmission(input: ReviewInput) {
  const { data, arm } = input;
  // An entry holds one prediction for each instance, from the first epoch.
  const ofArm = data.trials.filter((t) => t.arm === arm);
  const rows = scoredTrials(ofArm.filter((t) => t.epoch === 1));
  const epochs = new Set(ofArm.map((t) => t.epoch)).size;
  const unfinished = UNFINISHED.map((why) => [why, missing(rows, [why]).length] as const).filter(
    ([, n]) => n > 0,
  );
  const predictions = rows.length - unfinished.reduce((s, [, n]) => s + n, 0);
  // A failed call carries the name that was asked for: nothing answered.
  const models = [
    ...new Set(data.ledger.filter((l) => l.arm === arm && l.calls > l.failedCalls).map((l) => l.model)),
  ];
  const others = otherModels(data, arm, models);
  const attempts: '1' | '2+' = epochs <= 1 && input.redone.length === 0 ? '1' : '2+';
  return {
    problems: compact([
      rows.length === 0 && `arm ${arm} planned nothing`,
      unfinished.length > 0 &&
        `${unfinished.map(([why, n]) => plural(n, `${why.replaceAll('_', ' ')} instance`)).join(', ')} unresolved; ${predictions}/${rows.length} predictions`,
      ...recordProblems(rows),
      others !== null &&
        !input.acceptModelChange &&
        `${others}; --accept-model-change says that this is meant`,
    ]),
    warnings: compact([epochs > 1 && `the run has ${epochs} epochs; the entry holds the first`]),
    models,
    attempts,
    predictions,
    planned: rows.length,
  };
}

const UNFINISHED: readonly Missing[] = ['infra', 'config', 'cancelled', 'not_run', 'running'];

const missing = (rows: readonly ScoredTrial[], reasons: readonly Missing[]): ScoredTrial[] =>
  rows.filter(({ standing }) => !standing.valid && reasons.includes(standing.why));

/** Lacks of the trials: an entry must have verdicts, patches, and histories without the solution. */
function recordProblems(rows: readonly ScoredTrial[]): string[] {
  const ungraded = missing(rows, ['not_graded', 'grading_infra', 'ungradable']);
  const unknown = rows.filter(({ trial }) => trial.patchUnknown);
  const leaky = rows.filter(({ trial }) => trial.history === 'failed' || trial.history === 'skipped');
  return compact([
    ungraded.length > 0 &&
      `${plural(ungraded.length, 'prediction')} without a verdict: ${ids(ungraded)}; run "evaluate" first`,
    unknown.length > 0 &&
      `the patch of ${plural(unknown.length, 'instance')} is not known: ${ids(unknown)}; import the predictions with their reports`,
    leaky.length > 0 &&
      `history was not sealed for ${plural(leaky.length, 'instance')}: ${firstIds(leaky)}; such a run is not submittable`,
  ]);
}

/** The fault of the model that answered; null when it is the one that was asked for. */
function otherModels(data: RunData, arm: string, answered: readonly string[]): string | null {
  if (answered.length > 1) return `the provider answered with several models: ${answered.join(', ')}`;
  // Files of an imported run do not name the model that was asked for.
  if (data.run.imported) return null;
  const other = data.ledger.find(
    (l) => l.arm === arm && l.calls > l.failedCalls && l.asked.some((asked) => !sameModel(asked, l.model)),
  );
  return other ? `${other.asked.join(', ')} was asked for and ${other.model} answered` : null;
}

const DATED = /[-@:]\d{4}-?\d{2}-?\d{2}$/;

/** A router's prefix and the date of the snapshot behind an alias do not make another model. */
export function sameModel(asked: string, answered: string): boolean {
  const bare = (name: string) => name.slice(name.lastIndexOf('/') + 1).toLowerCase();
  return bare(asked) === bare(answered) || bare(asked) === bare(answered).replace(DATED, '');
}

const firstIds = (rows: readonly ScoredTrial[]): string =>
  rows
    .slice(0, 5)
    .map((r) => r.instanceId)
    .join(', ');

const ids = (rows: readonly ScoredTrial[]): string => `${firstIds(rows)}${rows.length > 5 ? ', ...' : ''}`;

const text = z.string().min(1);
const list = z.array(text);

/** Strict: an older flat form, or `checked: "false (see ...)"`, must be refused here and not disappear there. */
const metadataSchema = z.strictObject({
  info: z.strictObject({
    name: text,
    site: z.string().default(''),
    report: z.string().default(''),
    authors: z.union([z.string(), list]).default([]),
    logo: z.string().optional(),
  }),
  assets: z.strictObject({ logs: z.string(), trajs: z.string() }).optional(),
  tags: z.strictObject({
    checked: z.boolean(),
    model: list,
    org: z.union([z.string(), list]),
    os_model: z.boolean(),
    os_system: z.boolean(),
    system: z.strictObject({ attempts: z.enum(['1', '2+']) }),
  }),
});
export type SubmissionMetadata = z.infer<typeof metadataSchema>;

export const SPLITS = {
  lite: 300,
  verified: 500,
  test: 2294,
  multilingual: 300,
  multimodal: 517,
  'bash-only': 500,
} as const;
export type Split = keyof typeof SPLITS;

const BUCKET = 's3://swe-bench-submissions';

/** Metadata by the record alone; the rest is listed for the submitter. `place`: "<split>/<entry>". */
export function draftMetadata(facts: {
  readonly models: readonly string[];
  readonly attempts: '1' | '2+';
  readonly place: string;
}): {
  metadata: SubmissionMetadata;
  toFillIn: string[];
} {
  return {
    metadata: {
      info: { name: `swebatch + ${facts.models[0] ?? 'unknown model'}`, site: '', report: '', authors: [] },
      // Where the maintainers put them when they merge.
      assets: { logs: `${BUCKET}/${facts.place}/logs`, trajs: `${BUCKET}/${facts.place}/trajs` },
      tags: {
        checked: false,
        model: [...facts.models],
        org: ['Undisclosed'],
        os_model: false,
        os_system: true,
        system: { attempts: facts.attempts },
      },
    },
    toFillIn: ['info.name', 'info.site', 'info.report', 'info.authors', 'tags.org', 'tags.os_model'],
  };
}

/** Every problem at once, by its path. */
export function parseMetadata(
  value: unknown,
): { ok: true; metadata: SubmissionMetadata } | { ok: false; problems: string[] } {
  const found = metadataSchema.safeParse(value);
  if (found.success) return { ok: true, metadata: found.data };
  return {
    ok: false,
    problems: found.error.issues.map((i) => `metadata ${i.path.join('.') || '(top)'}: ${i.message}`),
  };
}

const slug = (name: string): string =>
  stripChars(name.toLowerCase().replace(/[^a-z0-9.]+/g, '-'), '-.') || 'unnamed';

/** <YYYYMMDD>_<system>_<model>: the board shows the first eight characters as the date. */
export const entryName = (date: string, system: string, model: string): string =>
  `${date.slice(0, 10).replaceAll('-', '')}_${slug(system)}_${slug(model.split('/').at(-1)!)}`;
