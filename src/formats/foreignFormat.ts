/** The contract of a format of another tool: how a path is recognised as one, and the plain data that is read from it. */
import { z } from 'zod';
import { ownEntry } from '../base/isRecord.ts';
import { timestampOrNull, tokensOrNull } from '../base/plausible.ts';
import { instanceIdProblem, instanceIdSchema } from '../base/text/instanceId.ts';
import type { ExitReason } from '../outcome.ts';

/** A file or folder, as far as it is looked at before a reader is chosen. */
export interface Listing {
  /** Last part of the path. */
  readonly name: string;
  /** Files below a folder, relative, some levels deep; null for a file. */
  readonly files: readonly string[] | null;
  /** The first bytes of a file below the folder, or of the file itself (''). */
  readonly head: (path: string) => string;
}

/** Only a guess that chooses a reader: the reader judges what is really there. */
export interface Claim {
  /** "a job folder of Harbor" */
  readonly words: string;
  /** The surest of several formats that claim a path has it; of equally sure ones, the first in the table. */
  readonly certain: 'sure' | 'likely' | 'possible';
  /** The format holds verdicts and nothing else of a run, so it is compared as it stands (verdicts.ts). */
  readonly verdictsAlone?: boolean;
  /**
   * The places that are read beside a file: none, all below its folder, or what lies in the folder above too. Without it: predictions, patches and
   * reports in its folder.
   */
  readonly reads?: 'itself' | 'below' | 'above';
}

/** All rows of a run of ours, packed, and where they lie. */
export interface CarriedRecord {
  readonly path: string;
  readonly bytes: Buffer;
}

export interface ForeignFormat {
  readonly recognise: (listing: Listing) => Claim | null;
  /**
   * Null where the path is of another kind after all. `report`: where the verdicts are, when they are not in the source. Throws a
   * SourceError for what cannot be read.
   */
  readonly read: (source: string, report?: string) => ForeignRun | null | Promise<ForeignRun | null>;
  /** The records in files that carry them inside; null where one of the files does not. */
  readonly records?: (source: string) => Promise<readonly CarriedRecord[] | null>;
}

/** The model when neither prediction nor trajectory names one. */
export const UNKNOWN_MODEL = 'unknown';

/** The place of a trial in the run that is made of it. */
export interface TrialIdentity {
  readonly instanceId: string;
  /** Which of several trials of the instance; the first where there is one. */
  readonly epoch?: number;
  /** The arm, where the source has several agents or models. */
  readonly arm?: string;
}

/** Ids hold no spaces. */
export const trialKey = ({ instanceId, epoch = 1, arm }: TrialIdentity): string =>
  epoch === 1 && arm === undefined ? instanceId : `${instanceId} ${epoch} ${arm ?? ''}`;

/** Trials in their order: each of an instance and an arm is its next epoch. */
export function numbered<T extends TrialIdentity>(trials: readonly T[]): (T & { readonly epoch: number })[] {
  const last = new Map<string, number>();
  return trials.map((trial) => {
    const key = trialKey({ ...trial, epoch: 1 });
    const epoch = (last.get(key) ?? 0) + 1;
    last.set(key, epoch);
    return { ...trial, epoch };
  });
}

/** The first `epochs` trials of an instance. */
export const epochsOf = (place: TrialIdentity, epochs: number): TrialIdentity[] =>
  Array.from({ length: epochs }, (_, at) => ({ ...place, epoch: at + 1 }));

/** Planned trials that a source has nothing of, each once. */
export function lacking(planned: readonly TrialIdentity[], has: readonly TrialIdentity[]): TrialIdentity[] {
  const left = new Map(planned.map((place) => [trialKey(place), place]));
  for (const place of has) left.delete(trialKey(place));
  return [...left.values()];
}

/** "a, b (2 trials), …": each id once, with how many trials it stands for. */
export function counted(ids: readonly string[], most: number): string {
  const groups = [...Map.groupBy(ids, (id) => id)].map(([id, all]) =>
    all.length > 1 ? `${id} (${all.length} trials)` : id,
  );
  return `${groups.slice(0, most).join(', ')}${groups.length > most ? ', …' : ''}`;
}

export interface ForeignInstance extends TrialIdentity {
  readonly model: string;
  readonly format: string;
  readonly version: string | null;
  readonly exitStatus: string | null;
  readonly exitReason: ExitReason;
  readonly errorMessage: string | null;
  readonly submission: string | null;
  /** Null where it is not known: a report alone holds verdicts and no patch. */
  readonly modelPatch: string | null;
  /** The patch where it is not UTF-8: `modelPatch` then has other characters in the place of wrong bytes. */
  readonly patchBytes?: Uint8Array;
  readonly steps: number;
  readonly costNano: number | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly calls: readonly RecordedCall[];
  /** Seconds since 1970. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Null when only a prediction was there: without a patch the environment never started, for then mini-swe-agent writes no trajectory. */
  readonly file: string | null;
  /** Impossible values of the file, which are treated as unknown. */
  readonly notes?: readonly string[];
}

/** An instance by what a file says; the rest is not known. */
export const foreignInstance = (
  stated: Pick<ForeignInstance, 'instanceId' | 'model' | 'format'> & Partial<ForeignInstance>,
): ForeignInstance => ({
  version: null,
  exitStatus: null,
  exitReason: 'submitted',
  errorMessage: null,
  submission: null,
  modelPatch: null,
  steps: 0,
  costNano: null,
  config: {},
  messages: [],
  calls: [],
  startedAt: null,
  endedAt: null,
  file: null,
  ...stated,
});

const MULTI_SWE = /^([A-Za-z0-9_.-]{1,100})\/([A-Za-z0-9_.-]{1,100}):pr-(\d{1,12})$/;

/** "org/repo:pr-7" of Multi-SWE-bench's reports is "org__repo-7" in its rows; others as they are. */
export const foreignId = (id: string): string => id.replace(MULTI_SWE, '$1__$2-$3');

export const foreignIds = z.array(z.string().transform(foreignId).pipe(instanceIdSchema));

/** The reason why a name in a file, or of it, cannot stand for an instance; null where it can. */
export function foreignIdProblem(path: string, id: string): string | null {
  const wrong = instanceIdProblem(id);
  return wrong && `${path}: the name ${JSON.stringify(id)} is not an instance id: it ${wrong}`;
}

/** Findings whose name is an id; each other name is a problem. */
export const withIds = <T extends { readonly path: string; readonly instanceId: string }>(
  found: readonly T[],
  problems: string[],
): T[] =>
  found.filter(({ path, instanceId }) => {
    const wrong = foreignIdProblem(path, instanceId);
    if (wrong !== null) problems.push(wrong);
    return wrong === null;
  });

/** Seconds since 1970 of a date as text. */
export const secondsOf = (date: string | null | undefined): number | null =>
  timestampOrNull(Date.parse(date ?? '') / 1000);

/** Exceptions of Python, litellm and the clients of providers, by what they say about the end of an attempt. */
const EXCEPTIONS: Readonly<Record<string, ExitReason>> = {
  CancelledError: 'cancelled',
  KeyboardInterrupt: 'cancelled',
  ContextWindowExceededError: 'context_window_exceeded',
  ContentPolicyViolationError: 'model_refusal',
  RateLimitError: 'model_unavailable',
  RetryError: 'model_unavailable',
  APIError: 'model_unavailable',
  APIConnectionError: 'model_unavailable',
  APIStatusError: 'model_unavailable',
  APITimeoutError: 'model_unavailable',
  InternalServerError: 'model_unavailable',
  ServiceUnavailableError: 'model_unavailable',
  Timeout: 'model_unavailable',
  BadRequestError: 'model_rejected',
  UnsupportedParamsError: 'model_rejected',
  AuthenticationError: 'auth_failed',
  PermissionDeniedError: 'auth_failed',
  NotFoundError: 'model_not_found',
};
export const reasonOfException = (name: string): ExitReason | undefined => ownEntry(EXCEPTIONS, name);

/** The span from the first of these times to the last. */
export const spanOf = (seconds: readonly number[]) => ({
  startedAt: seconds.length > 0 ? seconds.reduce((a, b) => Math.min(a, b)) : null,
  endedAt: seconds.length > 0 ? seconds.reduce((a, b) => Math.max(a, b)) : null,
});

/** A model call, as far as a file of another tool states it. */
export interface RecordedCall {
  readonly step: number;
  readonly model: string | null;
  readonly responseId: string | null;
  readonly finishReason: string | null;
  /** The usage as the provider sent it. */
  readonly rawUsage: unknown;
  readonly inputTokens: number | null;
  readonly cacheReadTokens: number | null;
  /** The tokens of cache writes, where the usage says them. */
  readonly cacheWriteTokens?: number;
  readonly outputTokens: number | null;
  readonly reasoningTokens: number | null;
  /** The reply's own cost, null where it states none. */
  readonly costNano: number | null;
  /** Seconds since 1970; null where it is not stated. */
  readonly at: number | null;
  /** Numbers that it states and cannot be: unknown from here on. */
  readonly notes?: readonly string[];
}

/** A call by what a file says; the rest is not known. */
export const recordedCall = (stated: Partial<RecordedCall>): RecordedCall => ({
  ...{ step: 1, model: null, responseId: null, finishReason: null, rawUsage: null },
  ...{ inputTokens: null, cacheReadTokens: null, outputTokens: null, reasoningTokens: null, costNano: null },
  at: null,
  ...stated,
});

/** One call in place of all of a trial, where a file states their use together. */
export const wholeCall = (stated: Partial<RecordedCall>): RecordedCall =>
  recordedCall({ notes: ['all calls of the trial in one'], ...stated });

interface PromptUsage {
  readonly prompt: unknown;
  readonly cached: unknown;
  readonly written?: unknown;
  readonly completion: unknown;
  readonly reasoning?: unknown;
}

/** Tokens of a tool whose prompt counts what came from the cache and what was written to it. Impossible numbers are unknown. */
export function tokensOfPrompt({ prompt, cached, written, completion, reasoning }: PromptUsage) {
  const whole = tokensOrNull(prompt);
  const read = tokensOrNull(cached) ?? 0;
  const kept = tokensOrNull(written);
  return {
    inputTokens: whole === null ? null : Math.max(0, whole - read - (kept ?? 0)),
    cacheReadTokens: whole === null ? null : read,
    ...(kept !== null && { cacheWriteTokens: kept }),
    outputTokens: tokensOrNull(completion),
    reasoningTokens: tokensOrNull(reasoning),
  };
}

export type ForeignOutcome = 'resolved' | 'unresolved' | 'empty_patch' | 'error' | 'pending' | 'incomplete';

export interface ForeignVerdict {
  readonly verdict: ForeignOutcome;
  readonly reason: string | null;
  /** The instance's report.json, where there is one. */
  readonly report: string | null;
  /** Recorded with the evaluation. */
  readonly grader: string;
  /** The reason of a missing verdict, where it is told apart from others. */
  readonly lost?: 'infra' | 'no_logs' | 'not_graded';
  /** The reward, where the suite gives numbers. */
  readonly reward?: number | null;
  readonly rewards?: Readonly<Record<string, number>> | null;
}
/** The verdicts by `trialKey`. */
export type ForeignVerdicts = ReadonlyMap<string, ForeignVerdict>;

/** Results of another tool: what our runs record, as far as the files contain it. */
export interface ForeignRun {
  /** The place that the run was read from. */
  readonly folder: string;
  readonly instances: readonly ForeignInstance[];
  readonly verdicts: ForeignVerdicts;
  /** Trials that the source meant to run and has nothing of: they are missing. */
  readonly neverRun?: readonly TrialIdentity[];
  readonly warnings: readonly string[];
  /** Unreadable parts that would be lost, with file, line and id; nothing is imported until they are fixed. */
  readonly problems: readonly string[];
}

/** The verdicts of a file that holds nothing else. */
export interface StatedVerdicts {
  readonly kind: 'run-report' | 'leaderboard';
  readonly verdicts: ForeignVerdicts;
  /** The dataset, where only some ids are named and every other instance of it is unresolved; null where all are named. */
  readonly open: {
    /** Instances of the dataset; null when unknown. */
    readonly total: number | null;
    readonly byRepo: ReadonlyMap<string, number> | null;
  } | null;
  /** The rate that the file itself states; null where it states none. */
  readonly printed: Printed | null;
  /** The facts of the run's making, as far as the source says them. */
  readonly facts: ReadonlyMap<string, unknown>;
  readonly warnings: readonly string[];
}

export interface Printed {
  readonly resolved: number;
  readonly of: number;
}

/** Lists of ids of a report, and what standing in each of them says. */
export type IdLists = readonly (readonly [key: string, verdict: ForeignOutcome])[];

const idsIn = (report: Readonly<Record<string, unknown>>, key: string): readonly string[] =>
  (report[key] as readonly string[] | undefined) ?? [];

/** The verdicts by id: of several lists that name an instance the last one counts. */
export const verdictsOfLists = (
  lists: IdLists,
  report: Readonly<Record<string, unknown>>,
): Map<string, ForeignOutcome> =>
  new Map(lists.flatMap(([key, verdict]) => idsIn(report, key).map((id) => [id, verdict] as const)));

export const repeatedIds = (resolved: readonly string[]): string[] => {
  const repeated = resolved.length - new Set(resolved).size;
  return repeated > 0 ? [`lists ${repeated} resolved id(s) twice; each counts once`] : [];
};

/** A note on resolved ids that other lists name too: no tool lists them so, and the file may have been made by hand. */
export const alsoListed = (
  report: Readonly<Record<string, unknown>>,
  resolved: string,
  others: readonly string[],
): string[] => {
  const won = new Set(idsIn(report, resolved));
  return others.flatMap((key) => {
    const both = idsIn(report, key).filter((id) => won.has(id));
    return both.length === 0
      ? []
      : [`lists ${counted(both, 5)} in ${key} and in ${resolved}; each counts as resolved`];
  });
};

/** A check for superRefine: an instance is not resolved and failed; a number made of such a file would be a choice of ours. */
export const refuseContradictions =
  (resolved: string, failed: readonly string[]) =>
  (report: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void => {
    const won = new Set(idsIn(report, resolved));
    for (const key of failed)
      for (const [at, id] of idsIn(report, key).entries())
        if (won.has(id))
          context.addIssue({ code: 'custom', path: [key, at], message: `${id} is in ${resolved} too` });
  };
