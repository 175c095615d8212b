/**
 * Grades predictions as they arrive, in fresh containers, beside the agents' slots and with its own concurrency. A verdict is keyed by
 * patch and spec: what is graded already is not graded again, and nothing is overwritten.
 */
import { gzipSync } from 'node:zlib';
import PQueue from 'p-queue';
import type { Redactor } from '../../base/text/redact.ts';
import type { EnvironmentFactory } from '../../environment/environment.ts';
import { createEnvironmentFactory, type EngineImageSource } from '../../environment/factory.ts';
import { currentOwner } from '../../environment/owner.ts';
import { type EvaluationResult, evaluatePrediction, patchHash } from '../../grading/evaluatePrediction.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { GRADING_DOCKER_OPTIONS, gradingEnvironment } from '../../grading/gradingEnvironment.ts';
import type { ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import { type GradeSpec, resolveGradeSpec } from '../../grading/specs/spec.ts';
import { loadParsers } from '../../grading/userParsers.ts';
import type { Outcome } from '../../outcome.ts';
import { StorageError, type Store } from '../../store/open.ts';
import {
  type EvaluationRow,
  type Gradable,
  gradableTrials,
  insertEvaluation,
  verdictsOf,
} from '../../store/records/evaluations.ts';
import type { ArmRow, RunRow } from '../../store/records/runs.ts';
import { crashPoint } from '../control/crash.ts';
import type { StopLadder } from '../control/stop.ts';
import type { RunEvents, TrialLabel } from '../events.ts';
import { type GradedFiles, writeGradedFiles } from '../record/gradedFiles.ts';
import type { PlannedInstance } from '../runAttempt.ts';
import { recordedEnvironment } from '../schedule/plannedConfig.ts';

export interface GraderParts {
  readonly store: Store;
  readonly run: RunRow;
  readonly config: GradingConfig;
  readonly arms: readonly ArmRow[];
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  readonly cwd: string;
  /** DIR/<run> */
  readonly dir: string;
  readonly version: string;
  /** Who brings images; default: each grading sees to its own. */
  readonly images?: EngineImageSource | undefined;
}

export interface GradingSummary {
  readonly outcomes: Readonly<Record<string, number>>;
  /** Predictions without a usable verdict. */
  readonly ungraded: number;
}

export interface Grader {
  enqueue(trialId: number): void;
  /** Everything that is sealed and has no verdict for its patch. Returns how many. */
  enqueueMissing(only?: (g: Gradable) => boolean, again?: boolean): number;
  /** What `enqueueMissing` would take now. */
  missing(): readonly Gradable[];
  drain(): Promise<void>;
  summary(only?: (g: Gradable) => boolean): GradingSummary;
  close(): Promise<void>;
}

/** Verdicts that say nothing about the patch: they are tried again on the next evaluation. */
const UNUSABLE: ReadonlySet<Outcome> = new Set(['infra', 'ungradable']);

export async function createGrader(parts: GraderParts): Promise<Grader> {
  const { store, run, config, stop } = parts;
  const parsers = await loadParsers(config.parsers, parts.cwd);
  const factory = await graderFactory(parts);
  const queue = new PQueue({ concurrency: config.workers });
  const arms = new Map(parts.arms.map((a) => [a.id, a]));
  const repeats: Gradable[] = [];
  let broken: unknown = null;
  let files: Promise<void> = Promise.resolve();

  /** What the full disk ended is graded again at the end; what the second interrupt ended is left for the next evaluation. */
  const work = async (gradable: Gradable, alone: boolean): Promise<void> => {
    const signal = stop.attempts;
    try {
      await grade(gradable, alone, signal);
    } catch (error) {
      if (!signal.aborted || error instanceof StorageError) throw error;
      if (stop.stage < 2) repeats.push(gradable);
    }
  };

  const grade = async (gradable: Gradable, alone: boolean, signal: AbortSignal): Promise<void> => {
    if (stop.stage >= 2) return;
    const { instance } = parts.instances.get(gradable.instance_pk)!;
    const arm = arms.get(gradable.arm_id)!;
    const label: TrialLabel = {
      trialId: gradable.trial_id,
      instanceId: instance.instance_id,
      arm: arm.name,
      epoch: gradable.epoch,
    };
    const spec = resolveGradeSpec(instance, { dialect: config.dialect, parsers });
    if (!spec.ok) {
      record(parts, gradable, label, null, ungradable(spec.reason, instance.instance_id, gradable, config));
      return;
    }
    const result = await evaluatePrediction({
      spec: spec.spec,
      patch: gradable.model_patch,
      factory,
      config,
      parsers,
      owner: currentOwner(run.name, `grade-${gradable.attempt_id}`),
      signal,
    });
    // A timeout beside other work may be the machine's: it counts once it happened alone (T-59).
    if (result.repeatAlone && !alone) {
      repeats.push(gradable);
      return;
    }
    record(parts, gradable, label, spec.spec, result);
    crashPoint('graded');
    const written: GradedFiles = {
      store,
      run,
      dir: parts.dir,
      arm: arm.name,
      epoch: gradable.epoch,
      model: gradable.model,
    };
    files = files
      .then(() => writeGradedFiles(written, gradable.model_patch, result, parts.redactor))
      // Nobody waits for this before the end: without a catch here it would end the process.
      .catch((error: unknown) => {
        broken ??= error;
      });
  };

  const enqueue = (gradable: Gradable) => {
    void queue
      .add(async () => {
        // Not before the caller knows how many there are: what cannot be graded has its verdict at once.
        await null;
        await work(gradable, false);
      })
      .catch((error: unknown) => {
        broken ??= error;
      });
  };

  const missing = (only: (g: Gradable) => boolean = () => true, again = false): Gradable[] => {
    const verdicts = verdictsOf(store, run.id);
    return gradableTrials(store, run.id).filter((g) => {
      if (!only(g)) return false;
      const verdict = verdicts.get(g.trial_id);
      return again || !verdict || UNUSABLE.has(verdict.outcome) || !sameSpec(parts, g, verdict, parsers);
    });
  };

  return {
    missing: () => missing(),
    enqueue(trialId) {
      const gradable = gradableTrials(store, run.id).find((g) => g.trial_id === trialId);
      if (gradable) enqueue(gradable);
    },
    enqueueMissing(only, again) {
      const found = missing(only, again);
      for (const g of found) enqueue(g);
      return found.length;
    },
    async drain() {
      await queue.onIdle();
      for (let next = repeats.shift(); next; next = repeats.shift()) await work(next, true);
      await files;
      if (broken !== null) throw broken instanceof Error ? broken : new Error(String(broken));
    },
    summary(only = () => true) {
      const outcomes: Record<string, number> = {};
      const verdicts = verdictsOf(store, run.id);
      const asked = gradableTrials(store, run.id).filter(only);
      let ungraded = 0;
      for (const { trial_id } of asked) {
        const outcome = verdicts.get(trial_id)?.outcome;
        if (outcome) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        if (!outcome || UNUSABLE.has(outcome)) ungraded++;
      }
      return { outcomes, ungraded };
    },
    close: () => factory.close(),
  };
}

function sameSpec(parts: GraderParts, g: Gradable, verdict: EvaluationRow, parsers: ParserRegistry): boolean {
  const { instance } = parts.instances.get(g.instance_pk)!;
  const spec = resolveGradeSpec(instance, { dialect: parts.config.dialect, parsers });
  return spec.ok && spec.spec.specHash === verdict.spec_hash && verdict.dialect === parts.config.dialect;
}

/** Grading runs where the harness runs it: in Docker, unless the arms themselves run locally. */
async function graderFactory(parts: GraderParts): Promise<EnvironmentFactory> {
  const arm = parts.arms[0];
  const environment = arm && recordedEnvironment(arm);
  const local = environment?.environment_class === 'local';
  const base = {
    environment_class: local ? 'local' : 'docker',
    ...(environment?.pull ? { pull: environment.pull } : {}),
    ...(environment?.platform ? { platform: environment.platform } : {}),
    // Beside the attempts: how many run at a time is grading.workers alone.
    ...(environment?.hosts ? { hosts: environment.hosts.map(({ host }) => ({ host, slots: 0 })) } : {}),
  };
  return createEnvironmentFactory(gradingEnvironment(parts.config, base), {
    docker: { ...GRADING_DOCKER_OPTIONS, capAdd: parts.config.cap_add },
    images: parts.images,
  });
}

function ungradable(
  reason: string,
  instanceId: string,
  g: Gradable,
  config: GradingConfig,
): EvaluationResult {
  return {
    instanceId,
    outcome: g.model_patch === '' ? 'empty_patch' : 'ungradable',
    resolved: null,
    resolvedStrict: null,
    report: null,
    log: null,
    script: '',
    runLog: [],
    applyMethod: null,
    exitCode: null,
    infraReason: null,
    suspicion: [],
    errorMessage: reason,
    durationMs: 0,
    imageDigest: null,
    network: config.network,
    dialect: config.dialect,
    specHash: '',
    patchSha256: patchHash(g.model_patch),
    startedAt: new Date(),
    repeatAlone: false,
  };
}

const bit = (value: boolean | null): number | null => (value === null ? null : value ? 1 : 0);

function record(
  parts: GraderParts,
  g: Gradable,
  label: TrialLabel,
  spec: GradeSpec | null,
  result: EvaluationResult,
): void {
  const { store, run, redactor, events } = parts;
  insertEvaluation(store, {
    run_id: run.id,
    trial_id: g.trial_id,
    attempt_id: g.attempt_id,
    instance_id: label.instanceId,
    model: g.model,
    patch_sha256: g.patch_sha256,
    spec_hash: spec?.specHash ?? '',
    dialect: result.dialect,
    outcome: result.outcome,
    resolved: bit(result.resolved),
    resolved_strict: bit(result.resolvedStrict),
    report: result.report === null ? null : redactor.text(JSON.stringify(result.report)),
    log: result.log === null ? null : gzipSync(redactor.text(result.log)),
    apply_method: result.applyMethod,
    exit_code: result.exitCode,
    infra_reason: result.infraReason,
    suspicion: redactor.text(JSON.stringify(result.suspicion)),
    error_message: result.errorMessage === null ? null : redactor.text(result.errorMessage),
    network: result.network,
    image_digest: result.imageDigest,
    source: 'native',
    started_at: result.startedAt.toISOString(),
    duration_ms: result.durationMs,
  });
  events.emit({
    type: 'graded',
    trial: label,
    outcome: result.outcome,
    resolved: result.resolved,
    durationMs: result.durationMs,
  });
}
