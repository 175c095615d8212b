/** What a run says, arm by arm. A pure function of the record; renderers stand beside it. */
import type { RunData } from '../../store/records/reportQueries.ts';
import { type ArmSummary, armSummary, type SummaryOptions } from './armSummary.ts';

const SUMMARY_SCHEMA = 1;

export interface Summary {
  readonly schema_version: typeof SUMMARY_SCHEMA;
  readonly run: string;
  readonly status: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly dataset: { readonly source: string; readonly revision: string | null; readonly hash: string };
  readonly budgetNano: number | null;
  readonly imported: boolean;
  readonly arms: readonly ArmSummary[];
  /** True when every planned trial is valid. */
  readonly complete: boolean;
  /** Trials started longest first, and not all of them are decided: what is there is no fair sample. */
  readonly longestFirst: boolean;
}

export function summarize(data: RunData, options: SummaryOptions = {}): Summary {
  const { run } = data;
  const arms = data.arms.map((arm) => armSummary(data, arm, options));
  return {
    schema_version: SUMMARY_SCHEMA,
    run: run.name,
    status: run.status,
    createdAt: run.createdAt,
    finishedAt: run.finishedAt,
    dataset: { source: run.datasetSource, revision: run.datasetRevision, hash: run.datasetHash },
    budgetNano: run.budgetNano,
    imported: run.imported,
    arms,
    complete: arms.every((a) => a.valid === a.planned && a.planned > 0),
    longestFirst: run.config.run?.order === 'longest' && arms.some((a) => a.sealed < a.planned),
  };
}
