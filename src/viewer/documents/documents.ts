/**
 * The documents the page reads. The same path names a document everywhere: `/api/<path>` on a live server, `data/<path>.json`
 * in a static bundle, a key inside a single page. All of them are plain JSON. Names that come from models or datasets are
 * in lists of pairs, so that a test called `__proto__` stays a test.
 */
import type { RewardMean } from '../../report/statistics/rewards.ts';
import type { CallRow, ShownEvent, ShownPhase, ShownTrial } from '../../store/records/viewerQueries.ts';
import type { StepFacts } from '../steps/stepFacts.ts';
import type { EngineStay, ProgramEnd } from './attemptFacts.ts';
export const TRIALS_PER_PAGE = 1000;
export const MESSAGES_PER_CHUNK = 40;

export interface Tally extends WithMeanReward {
  planned: number;
  sealed: number;
  running: number;
  pending: number;
  /** Trials whose ending says something final about the model: the denominator of coverage. */
  valid: number;
  /** Of those, how many a grader has spoken about: the denominator of the resolved rate. */
  graded: number;
  resolved: number;
  strict: number;
  flagged: number;
  classes: [exitClass: string, n: number][];
  outcomes: [outcome: string, n: number][];
}

export interface MoneyDocument {
  costNano: number | null;
  /** Calls whose price is unknown: the cost is then a lower bound. */
  unknownCalls: number;
  calls: number;
  failedCalls: number;
  inputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

export interface RunSummary {
  id: number;
  name: string;
  status: string;
  createdAt: string;
  finishedAt: string | null;
  imported: boolean;
  dataset: string;
  datasetRevision: string | null;
  datasetHash: string;
  configHash: string;
  arms: { name: string; model: string }[];
  tally: Tally;
  money: MoneyDocument;
  budgetNano: number | null;
}

export interface RunList {
  title: string;
  /** When the documents were made, for files; null on a live server. */
  madeAt: string | null;
  runs: RunSummary[];
}

export interface Slot {
  slot: number | null;
  trial: number;
  attempt: number;
  instanceId: string;
  arm: string;
  epoch: number;
  steps: number;
  phase: string | null;
  phaseSince: string | null;
  startedAt: string;
  costNano: number | null;
}

export interface ArmDocument {
  arm: string;
  model: string;
  tally: Tally;
  money: MoneyDocument;
}

export interface RunDocument {
  summary: RunSummary;
  arms: ArmDocument[];
  config: string;
  manifest: string;
  trialPages: number;
  slots: Slot[];
  /** Where attempts ended: sums of spend, ended, sealed, resolved. Some hundred of a large run; none of an import, which knows no times. */
  series: { at: string; costNano: number; ended: number; sealed: number; resolved: number }[];
  phases: { name: string; n: number; ms: number }[];
  breaker: { open: boolean; reason: string; at: string } | null;
  pulls: { now: number; done: number; ms: number };
  events: ShownEvent[];
}

type ShownRow = Omit<ShownTrial, 'suspicion' | 'grade_suspicion' | 'run_id' | 'reward'>;
export interface TrialDocument extends ShownRow, WithReward {
  /** resolved, unresolved, or why the trial is missing from the score. */
  verdict: string;
  flags: string[];
  money: MoneyDocument;
}
export interface TrialPage {
  run: number;
  total: number;
  rows: TrialDocument[];
}
export interface HistoryRow extends TrialDocument {
  run: string;
  runId: number;
  createdAt: string;
}

export interface TrialFlag {
  rule: string;
  step: number | null;
  evidence: string;
}

export interface OutlineRow {
  seq: number;
  role: string;
  chars: number;
  at: string | null;
  /** Of a program: whose conversation it belongs to, see AttemptDocument.threads. */
  thread: string | null;
  /** Step of an assistant message and of what follows it. */
  step: number | null;
  call: CallRow | null;
  tries: number;
  execMs: number | null;
  exitCode: number | null;
  timedOut: boolean;
  /** Of an answer: what its commands do. */
  does: StepFacts | null;
}

export interface EvaluationSummary extends WithNamedRewards {
  id: number;
  attempt: number | null;
  dialect: string;
  outcome: string;
  resolved: number | null;
  resolvedStrict: number | null;
  applyMethod: string | null;
  exitCode: number | null;
  infraReason: string | null;
  error: string | null;
  network: string | null;
  source: string;
  startedAt: string;
  durationMs: number | null;
  flags: TrialFlag[];
  /** The verdict that counts: of the patch this attempt predicts. */
  current: boolean;
}
export interface EvaluationDocument extends EvaluationSummary {
  tests: { name: string; group: string; passed: boolean; line: number | null }[];
  report: string | null;
  log: string | null;
  logOmitted: number;
}

/** A conversation of an agent that is a program: its own, or that of a sub-agent or a title. */
export interface ThreadDocument {
  name: string;
  /** subagent:ID, title, count_tokens; null for the agent's own turns. */
  label: string | null;
  calls: number;
  messages: number;
  costNano: number | null;
  unknownCalls: number;
}

export interface AttemptDocument {
  run: { id: number; name: string };
  trial: {
    id: number;
    arm: string;
    model: string;
    epoch: number;
    state: string;
    notRunReason: string | null;
  };
  instance: {
    instanceId: string;
    repo: string;
    difficulty: string;
    image: string;
    problem: string;
    goldPatch: string;
    testPatch: string;
    failToPass: string[];
    passToPass: number;
  };
  attempts: {
    id: number;
    number: number;
    final: boolean;
    state: string;
    exitReason: string | null;
    exitClass: string | null;
    steps: number;
    elapsedMs: number | null;
    startedAt: string;
    costNano: number | null;
  }[];
  attempt: {
    id: number;
    number: number;
    state: string;
    slot: number | null;
    startedAt: string;
    endedAt: string | null;
    exitReason: string | null;
    exitClass: string | null;
    exitDetail: string | null;
    exitStatus: string | null;
    error: string | null;
    steps: number;
    elapsedMs: number | null;
    workingMs: number | null;
    history: string | null;
    transport: string | null;
    imageDigest: string | null;
    oomKills: number;
    patchSource: string | null;
    patchState: string | null;
    notes: string[];
    flags: TrialFlag[];
    money: MoneyDocument;
    program: ProgramEnd | null;
    /** Only of a run on several engines. */
    engines?: EngineStay[];
  };
  patch: string;
  submission: string | null;
  captured: string | null;
  phases: ShownPhase[];
  outline: OutlineRow[];
  /** The agent's own first; empty for the built-in agent. */
  threads: ThreadDocument[];
  chunks: number;
  evaluations: EvaluationSummary[];
}
export interface MessageDocument {
  seq: number;
  role: string;
  content: string;
  reasoning: string | null;
  /** Of a task of several steps. */
  taskStep?: string;
  /** Commands asked for through tool calls, as far as they can be read. */
  toolCalls: { name: string; text: string }[];
  commands: {
    command: string;
    /** null where the message's own text holds the output; then `at` says where. */
    output: string | null;
    at: [start: number, end: number] | null;
    exitCode: number;
    timedOut: boolean;
    oomKilled: boolean;
    durationMs: number;
    totalBytes: number;
    omittedBytes: number;
  }[];
}
export interface MessageChunk {
  attempt: number;
  from: number;
  messages: MessageDocument[];
}
/** Both in one file of a bundle. */
export interface PackedChunk {
  attempt: number;
  from: number;
  /** `value`: the parsed data, whose texts then repeat those of the message; `data` where it is no JSON. A large bundle has none. */
  pairs: {
    message: MessageDocument;
    raw?: { seq: number; createdAt: string; value?: unknown; data?: string };
  }[];
}
export interface RawChunk {
  attempt: number;
  from: number;
  messages: { seq: number; createdAt: string; data: string }[];
}

/** Over instances. */
interface WithMeanReward {
  reward?: RewardMean;
}

/** Between 0 and 1. */
interface WithReward {
  reward?: number;
}

interface WithNamedRewards extends WithReward {
  /** All of them, the counted one too. */
  rewards?: [name: string, value: number][];
}
