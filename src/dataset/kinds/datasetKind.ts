/**
 * A kind of dataset: how its tasks are read, and what their containers need. How they are graded is in src/grading/kinds, under the same
 * name. A new kind is one file or folder here, one there, and one line in each of the two tables.
 */
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import type { McpServer } from '../../base/mcpServer.ts';
import type { Instance } from '../instance.ts';

export type RawRow = Readonly<Record<string, unknown>>;

/** One task of a folder; `id` names it also where it cannot be read. */
export interface FolderTask {
  readonly id: string;
  readonly path: string;
  readonly instance: Instance;
  /** Hash of everything that decides what is asked and how it is graded. */
  readonly hash: string;
  /** Why it cannot run here. It may be left out of a run; it is never run in part. */
  readonly refused?: string;
  readonly warnings: readonly string[];
}

export interface TaskBuild {
  readonly image: string;
  /** Throws when the folder is no longer what the name says. */
  readonly files: () => readonly { path: string; content: Uint8Array; executable: boolean }[];
  readonly timeoutS: number;
}

/** One of several steps of a task: they run one after the other in one container, each with its own instruction. */
export interface TaskStep {
  readonly name: string;
  readonly instruction: string;
  /** Seconds that the task gives its agent for it; undefined for no limit of its own. */
  readonly agentTimeoutS?: number | undefined;
  /** What goes into the work tree before it begins, by paths below that. Throws when the folder is no longer what it was. */
  readonly files: () => readonly { path: string; content: Uint8Array; executable: boolean }[];
  /** One of these files, which is run then. */
  readonly setup?: string;
  /** Must pass before the agent begins. */
  readonly healthcheck?: string | undefined;
}

export interface DatasetKind {
  /** As instances say it in `kind`. */
  readonly name: string;
  /** Rows of files: whether a raw row is of this kind, and its columns under the names of SWE-bench. */
  readonly rows?: { is(raw: RawRow): boolean; columns(raw: RawRow): RawRow };
  /** Folders: whether one holds such tasks, by a look at its names; then all of them. */
  readonly folders?: { is(dir: string): boolean; read(dir: string): readonly FolderTask[] };
  /** Why a row cannot run here, as a clause; undefined when it can. Told before anything starts. */
  refusal?(instance: Instance): string | undefined;
  container?(instance: Instance): ContainerNeeds;
  /** The most processors that one of its containers asks for; 0 for none. */
  processors?(instance: Instance): number;
  /** Seconds that the task gives its agent; undefined for no limit of its own. */
  agentTimeoutS?(instance: Instance): number | undefined;
  /** Servers of tools that its agent is to have. */
  mcpServers?(instance: Instance): readonly McpServer[];
  /** Of a task of several steps: all of them, in their order. */
  steps?(instance: Instance): readonly TaskStep[] | undefined;
  /** Images that are built from folders of the task: their names, and how. */
  builds?(instance: Instance): readonly TaskBuild[];
  /** The name of the image that its own recipe makes, where `datasets add --images built` asks for it; undefined where it has no recipe. */
  builtImage?(instance: Instance): string | undefined;
  /** Rows name no commit that can be looked up: the head of the image's repository is where a task begins. */
  readonly baseIsHead?: boolean;
  /** What is graded is the end state of the agent's container, not only its patch. */
  readonly keepsWork?: boolean;
}
