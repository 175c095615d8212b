/**
 * A suite: how its tasks are read, what they need, how an agent is led through one, and how it is graded. Each suite is one folder beside this file
 * and one line in suites.ts. The rest of the program knows suites by this contract alone.
 */
import type { AgentConfig } from '../agent/agentConfig.ts';
import type { AgentResult, Solution } from '../agent/contract.ts';
import type { ContainerNeeds } from '../base/containerNeeds.ts';
import type { McpServer } from '../base/mcpServer.ts';
import type { Instance } from '../dataset/instance.ts';
import type { HubEnv } from '../dataset/read/locate.ts';
import type { RawRow } from '../dataset/read/row.ts';
import type { CapturedPatch, Environment } from '../environment/environment.ts';
import type { BuildRecipe } from '../environment/places/buildRecipes.ts';
import type { EvaluationResult, GradeRequest, PlannedGrading } from '../grading/gradingFrame.ts';
import type { HarnessVersion } from '../grading/parsers/logParser.ts';
import type { SpecOptions } from '../grading/specs/spec.ts';
import type { ExitReason } from '../outcome.ts';

export interface Suite {
  /** Rows of files: their columns under the names of SWE-bench. `headIsBase`: the head of the image's repository is where a task begins. */
  readonly rows?: { columns(raw: RawRow): RawRow; readonly headIsBase?: boolean };
  /** Folders that hold tasks: all of them. `needed`: also while a task runs, so that it cannot be written as a row. */
  readonly folders?: {
    read(dir: string, split?: string): readonly FolderTask[];
    /** The splits that its tasks are in, that which is meant where none is named first; absent: tasks have none. */
    splits?(dir: string): readonly string[];
    readonly needed?: boolean;
  };
  /** The prompts, where nobody wrote one; absent: the default, which is about a repository and a report. */
  readonly prompts?: SuitePrompts;
  /** The reason why a task cannot run here, as a clause; undefined when it can. Told before anything starts. */
  refusal?(instance: Instance): string | undefined;
  needs?(instance: Instance): TaskNeeds;
  /** The Python package that the shell of its image must be able to import; undefined where none says that the right environment is active. */
  probes?(instance: Instance): string | undefined;
  /** Images that no registry has, and how each is built. */
  builds?(instance: Instance): readonly ImageBuild[];
  /** The name of the image that the task's own recipe makes, where `datasets add --images built` asks for it; undefined where it has no recipe. */
  builtImage?(instance: Instance): string | undefined;
  /** Leads the agent through a task in several runs. undefined: the agent runs once, on the problem statement. */
  lead?(instance: Instance): ((attempt: LedAttempt) => Promise<AgentResult>) | undefined;
  /**
   * The solution that the task brings, of one part of it where the suite leads an agent through several; undefined where it brings none.
   * Absent: the gold patch of the row.
   */
  solution?(instance: Instance, part?: string): Solution | undefined;
  /**
   * Keeps the end state of an attempt, where that is judged because no patch says the work: called when the agent is done, while the environment is
   * still there. Absent: the work is the patch of the work tree.
   */
  finish?(instance: Instance, attempt: EndedAttempt): Promise<FinishedWork>;
  grading(instance: Instance, options: SpecOptions): PlannedGrading;
}

/** Templates, as the configuration has them under `agent`. */
export interface SuitePrompts {
  readonly system: string;
  readonly instance: Readonly<Record<AgentConfig['protocol'], string>>;
  /** The prompt of agents that are programs. */
  readonly program: string;
}

/** The needs of a task as plain data; an absent field is no need. */
export interface TaskNeeds {
  readonly container?: ContainerNeeds;
  /** The most processors that one of its containers asks for, those of its grading included. */
  readonly processors?: number;
  /** The most memory, likewise. */
  readonly memoryMb?: number;
  /** A container of the task or of its grading reaches the hosts of a list. */
  readonly opensHosts?: boolean;
  /** Seconds that the task gives its agent. */
  readonly agentS?: number | undefined;
  /** Servers of tools that its agent is to have. */
  readonly toolServers?: readonly McpServer[];
  /** A folder of its container whose skills its agent is to have. */
  readonly skillsFolder?: string | undefined;
  /** Variables of this machine. */
  readonly variables?: readonly WantedVariable[];
  /** The most that one of its containers asks for. */
  readonly gpus?: number;
  /** The reason for a judgement in another container than the one that was worked in, as a clause; absent where that one may do. */
  readonly judgedApart?: string | undefined;
  /** Set where the task cannot run without end states that are kept: who says so, as the beginning of a clause. */
  readonly keepsEndStates?: string;
}

export interface WantedVariable {
  readonly name: string;
  /** The key in the task that says so. */
  readonly key: string;
  readonly hasDefault: boolean;
  /** The container that alone gets it; absent: each. */
  readonly reader?: 'verifier' | 'solution';
}

export interface ImageBuild extends BuildRecipe {
  readonly image: string;
}

/** A task of a folder; `id` names it also where it cannot be read. */
export interface FolderTask {
  readonly id: string;
  readonly path: string;
  readonly instance: Instance;
  /** Hash of everything that decides what is asked and how it is graded. */
  readonly hash: string;
  /** The reason why the task cannot run here. A run may leave it out, and never runs it in part. */
  readonly refused?: string;
  readonly warnings: readonly string[];
}

/** An attempt, as the suite of its task may use it. */
export interface OpenAttempt {
  readonly environment: Environment;
  beginPhase(name: string): void;
  /** A sentence that stays with the attempt. */
  note(text: string): void;
  /** The request of a grading while the attempt goes on. */
  gradeRequest(): Promise<Omit<GradeRequest, 'patch'>>;
  /** Waits for work that may ignore the end of the attempt. */
  orEnd<T>(work: Promise<T>): Promise<T>;
}

/** An attempt whose suite leads the agent through the task. */
export interface LedAttempt extends OpenAttempt {
  readonly signal: AbortSignal;
  /**
   * Runs the agent from its beginning to its end on one part of the task. The limits are those of the attempt: what earlier runs used is gone, and an
   * agent whose limits are used up is not started.
   */
  runAgent(part: AgentPart): Promise<AgentRun>;
  /** Writes down what is kept so far: `GradeRequest.work` of the grading. */
  recordWork(work: string): void;
}

/** An attempt whose agent is done. */
export interface EndedAttempt extends OpenAttempt {
  /** The reason why the agent's part ended. */
  readonly reason: ExitReason;
  readonly harness: HarnessVersion;
  /**
   * The patch of the work tree, without the values of this machine that were given to the task. `running`: processes are not killed. `lost`: the
   * error with which the engine took the result; null else.
   */
  capture(running: boolean): Promise<{ readonly captured: CapturedPatch | null; readonly lost: unknown }>;
  /** Work on the environment within the time that a capture may take. */
  inTime<T>(work: Promise<T>): Promise<T>;
  /** Writes texts into a folder of the attempt below one of the run; resolves to that folder. Secrets in them are replaced. */
  keepFiles(folder: string, files: readonly { name: string; text: string }[]): Promise<string>;
  /** A line of run.log. */
  warn(text: string, data: Record<string, unknown>): void;
}

/** The work of an attempt, as its settlement keeps it. */
export interface FinishedWork {
  readonly captured: CapturedPatch | null;
  /** The image of the end state; null where the patch is graded. */
  readonly work: string | null;
  /** The error of `EndedAttempt.capture` where the environment was lost meanwhile. */
  readonly lost: unknown;
  /**
   * Judges the work before its environment goes. Null: it is graded later, as every other. Throws where the work is gone, and would be judged for
   * less than it was.
   */
  readonly judge?: (patch: string) => Promise<EvaluationResult | null>;
}

export interface AgentPart {
  /** Messages say it as their task step. */
  readonly name: string;
  readonly instruction: string;
  /** Seconds that the task gives its agent for this part. */
  readonly agentS?: number | undefined;
}

interface AgentRun {
  /** The result, with the steps and the cost of all runs so far. */
  readonly result: AgentResult;
  readonly reason: ExitReason;
  /** The message for people; null where the reason says enough. */
  readonly message: string | null;
}

/** The place of a task of a registry: below a repository at a commit, or below the folder of the registry's own file. */
export interface RegisteredTask {
  readonly name: string;
  readonly path: string;
  readonly url?: string;
  readonly commit?: string;
}

/** Looks a dataset up by `NAME` or `NAME@VERSION`. `folder`: that of the registry's file; null where it is no file of this machine. */
export type ReadRegistry = (
  wanted: string,
  env: HubEnv,
) => Promise<
  | {
      readonly ok: true;
      readonly name: string;
      readonly version: string;
      readonly tasks: readonly RegisteredTask[];
      readonly folder: string | null;
    }
  | { readonly ok: false; readonly message: string; readonly hint?: string }
>;
