/**
 * The contract between the agent (or the grader) and the place where commands run.
 * A command that fails, times out or floods is a *result*. `EnvironmentError` is thrown only when the tool itself broke:
 * the container is gone, the daemon is lost, the image is missing. Every implementation passes tests/environment/conformance.
 */
import { posix } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Network } from '../base/allowList.ts';
import type { ContainerNeeds } from '../base/containerNeeds.ts';

export interface CommandResult {
  /** Output as text for people and models: UTF-8 with U+FFFD for invalid bytes, stdout and stderr merged in order. When bytes were
   *  omitted this is head + "\n… N bytes omitted …\n" + tail. */
  readonly output: string;
  /** The same bytes untouched (head and tail concatenated without the notice when `omittedBytes > 0`). */
  readonly raw: Uint8Array;
  /** As a shell reports it, 0-255; -1 when the command was killed by our timeout. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  /** Bytes the command wrote in all. */
  readonly totalBytes: number;
  /** Bytes dropped from the middle; 0 when `raw` is complete. */
  readonly omittedBytes: number;
  /** Invalid UTF-8 sequences replaced in `output`. */
  readonly replacedBytes: number;
  /** From the moment in which it was asked for. */
  readonly durationMs: number;
  /** A process was killed by the memory limit while this command ran. */
  readonly oomKilled: boolean;
  /** How the command travelled. */
  readonly transport: 'supervisor' | 'supervisor-file' | 'exec' | 'local';
  /** The failure of the command in words for the model (timeout, memory limit, command too long), else ''. */
  readonly exceptionInfo: string;
}

export interface ExecuteOptions {
  /** Seconds; default from the configuration. */
  readonly timeoutS?: number;
  /** Fires when `timeoutS` are over by a clock of the caller's, which then alone counts. */
  readonly timeUp?: AbortSignal | undefined;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** The work left in the environment as a patch against the start tree, taken by the harness. */
export interface CapturedPatch {
  /** Byte-exact unified diff with `--binary --full-index`; empty when nothing changed. */
  readonly patch: Uint8Array;
  readonly state: 'ok' | 'empty' | 'invalid' | 'oversized';
  /** Files left out or found odd (embedded repositories, FIFOs, size), one sentence each. */
  readonly warnings: readonly string[];
}

export type HistoryState = 'sealed' | 'absent' | 'failed' | 'skipped';

/** Facts about a started environment, recorded on the attempt. */
export interface EnvironmentInfo {
  readonly kind: string;
  readonly containerId?: string;
  readonly image?: string;
  /** Repo digest, else the image id. */
  readonly imageDigest?: string;
  readonly transport: 'supervisor' | 'exec' | 'local';
  readonly history: HistoryState;
  readonly notes: readonly string[];
  /** Folders of the image that `keepWork` never keeps. */
  readonly volumes?: readonly string[];
}

/** Abilities of a place beyond commands and single files: asked by name. */
export interface Capabilities {
  /** Runs a command as another user: `as`. */
  readonly asUsers: boolean;
  /** Hands out whole folders: `getFiles`. */
  readonly readsFolders: boolean;
  /** Makes an image of what an agent left: `keepWork`. */
  readonly canKeepWork: boolean;
  /** Lets a verifier work in the same place: `beside`. */
  readonly worksBeside: boolean;
  /** Opens a port inside, so that programs there can ask the model of their arm: `listen`. */
  readonly listens: boolean;
}

/** Capabilities of a kind, whose environments may have less: a pod without services is open to no verifier. */
export interface KindCapabilities extends Capabilities {
  /** Keeps lists of hosts (`environment.network.allow`, `ContainerNeeds.network`). */
  readonly opensHosts: boolean;
  /** Starts containers beside that of the work (`ContainerNeeds.services`). */
  readonly runsServices: boolean;
  /** Gives a container GPUs (`ContainerNeeds.gpus`). */
  readonly hasGpus: boolean;
  /** Brings the programs of installed agents. */
  readonly bringsPrograms: boolean;
}
export type Capability = keyof KindCapabilities;

export interface Environment {
  readonly info: EnvironmentInfo;
  /** Abilities, asked before `as`, `getFiles`, `keepWork`, `beside` and `listen`, which throw where one is lacking. */
  readonly capabilities: Capabilities;
  /** Runs one command in a fresh shell. Throws EnvironmentError only when the tool broke. Never rejects for the command's own failure. */
  execute(command: string, options?: ExecuteOptions): Promise<CommandResult>;
  /** Runs them as another user of the place. */
  as(user: string): Pick<Environment, 'execute'>;
  /** Names for the agent's templates (cwd, timeout, system...). Never secrets. */
  templateVars(): Readonly<Record<string, unknown>>;
  /** Kills everything but the environment itself, unless that is to go on, then diffs against the start snapshot. */
  capturePatch(kept?: CaptureOptions): Promise<CapturedPatch>;
  /** Whole files in and out, by absolute path inside. */
  putFile(path: string, content: Uint8Array | string, mode?: number): Promise<void>;
  getFile(path: string): Promise<Uint8Array>;
  /** Several files at once. A place that takes them one by one leaves out links and folders. */
  putFiles(files: readonly PlacedFile[]): Promise<void>;
  /**
   * The files at a path, or below it; none where it is not there. Links, folders and devices are left out, but for the first two where `whole` is
   * asked for. Throws FilesTooLargeError above the limit.
   */
  getFiles(path: string, maxBytes: number, whole?: boolean): Promise<PlacedFile[]>;
  /** Lays the path of an image over the place's own. Resolves to whether the image has it; an image that cannot be read has nothing. */
  putBack(image: string, path: string): Promise<boolean>;
  /**
   * Kills everything but the environment itself, unless that is to go on, and keeps what is there as an image, whose name it returns: a
   * start from it finds the same files. `EnvironmentFactory.discardWork` removes it.
   */
  keepWork(kept?: CaptureOptions): Promise<string>;
  /** Why an image would not have all files of the place; undefined where it has, or where nothing is kept. */
  unkept(): Promise<ReasonNotKept | undefined>;
  /** Changes here to the programs and libraries of the image; undefined where they are not known. */
  systemChanges(): Promise<SystemChanges | undefined>;
  /** Processes beside the environment itself; undefined where they are not known. */
  leftRunning(): Promise<LeftRunning | undefined>;
  /**
   * The same place for somebody else: commands run beside what is there, as the user whom the task or else the image names, each by a process
   * of the engine's. The end of that environment leaves the place as it is. `putBack`: as in a StartRequest, before its first command.
   * `network`: the hosts that the place reaches from now on, where it reaches hosts of a list.
   */
  beside(putBack?: StartRequest['putBack'], network?: Network): Promise<Environment>;
  /** Watches writers below some folders, which are there: processes that ran before, or that `execute` starts here. */
  watchWrites(folders: readonly string[]): Promise<WriteWatch | NotWatched>;
  /** True of what `beside` opens: processes of the one who worked here before may run. */
  readonly runsBeside: boolean;
  /**
   * Opens a port on the loopback inside, and hands over every connection that is made to it there. Nothing else of this machine can be
   * reached by it. Throws EnvironmentError when it cannot be opened.
   */
  listen(port: number, onConnection: (connection: Duplex) => void): Promise<Doorway>;
  /** Sets the network from now on, in this phase, where the place reaches the hosts of a list. */
  enterPhase(phase: EgressPhase, network: Network): void;
  /** The end of what each service beside it printed. */
  serviceLogs(): Promise<readonly ServiceLog[]>;
  /** Kills and removes. Safe to call twice; never throws. */
  close(): Promise<void>;
}

/** `setup`: before the agent, or before the tests. */
export type EgressPhase = 'setup' | 'agent' | 'verifier';

/** A connection that something in an environment made, or wanted to make, to the outside. */
export interface EgressConnection {
  readonly phase: EgressPhase;
  readonly via: 'connect' | 'http';
  /** Empty where none could be read. */
  readonly host: string;
  /** 0 where none could be read. */
  readonly port: number;
  readonly outcome: 'allowed' | 'refused' | 'failed';
  /** Why it was refused, failed or was closed from here. */
  readonly reason: string | null;
  /** From the host into the environment. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly durationMs: number;
}

export interface ServiceLog {
  readonly service: string;
  readonly text: string;
}

export interface CaptureOptions {
  /** Processes are not killed. */
  readonly running?: boolean;
  /** Paths of the work tree that are no part of the patch where they are new: `agent.beside_work`. */
  readonly beside?: readonly string[];
}

export interface ReasonNotKept {
  /** A clause: "what lies in /data (VOLUME of its image) is in no image of its container". */
  readonly why: string;
  /** No image may be made. */
  readonly never: boolean;
}

export interface LeftRunning {
  readonly count: number;
  /** Names of the first processes, in letters that cannot harm. */
  readonly names: readonly string[];
}

export interface WriteWatch {
  /** Folders that were made below since then are watched from now on. */
  again(): Promise<void>;
  /** Ends the watch. Resolves to the writes it saw; undefined where somebody ended it before. Safe to call twice; never rejects. */
  end(): Promise<readonly SeenWrite[] | undefined>;
}

/** The reason why the engine or its kernel cannot watch. */
export interface NotWatched {
  readonly refused: string;
}

export interface SeenWrite {
  /**
   * `left`: the writer ran before the watch, or comes of one that did. `program`: a program that the agent brought or changed. `script`: test.sh.
   * `tests`: another process that was started since. `unknown`: the writer was gone, or had lost its parents, before anybody could tell.
   */
  readonly by: 'left' | 'program' | 'script' | 'tests' | 'unknown';
  /** The program, in letters that cannot harm, as its path is. */
  readonly program: string;
  /** `-` where the writer is the first program of the container, whose paths are not followed. */
  readonly path: string;
}

export interface PlacedFile {
  /** Absolute, inside. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
  /** Absent: a file. */
  readonly kind?: 'folder' | 'link' | 'hardlink';
  /** The target of a link as it says it; of a hard link the other name of the file, absolute. */
  readonly target?: string;
}

/** Texts by their names below an absolute folder. */
export const placeTexts = (
  environment: Pick<Environment, 'putFiles'>,
  folder: string,
  texts: Readonly<Record<string, string>>,
  mode = 0o644,
): Promise<void> =>
  environment.putFiles(
    Object.entries(texts).map(([name, text]) => ({
      path: posix.join(folder, name),
      content: Buffer.from(text),
      mode,
    })),
  );

/** Files of an environment hold more bytes than were asked for. */
export class FilesTooLargeError extends Error {
  override readonly name = 'FilesTooLargeError';
}

/** A port inside of an environment. */
export interface Doorway {
  /** The port asked for, or another where that is not free to choose. */
  readonly port: number;
  /** Resolves when connections can no longer be carried, though nobody closed it; never rejects. */
  readonly broken: Promise<EnvironmentError>;
  /** Safe to call twice; never throws. */
  close(): Promise<void>;
}

export type EnvironmentErrorCode =
  | 'image_missing'
  | 'image_pull_failed'
  | 'image_build_failed'
  | 'start_failed'
  | 'setup_failed'
  | 'died'
  | 'history_unsealed'
  | 'disk_full'
  | 'daemon_lost';

/** Why an environment does not start: the configuration wants no network, and the place does not keep it away. */
export const OPEN_NETWORK = 'open_network';
/** The shell of the image uses another environment than the one that its tests need, as the probe of an attempt found. */
export const WRONG_ENVIRONMENT = 'wrong_env';
/** Login shells alone use the right environment: the configuration is the proven cause, and every instance would end like this. */
export const LOGIN_SHELL = 'login_shell';
/** A container of the image cannot have what the configuration asks for. */
export const REFUSED_OPTION = 'refused_option';

/** The tool broke; `evidence` is State, exit code, oom counters, last lines: for the record, never for the model. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  readonly code: EnvironmentErrorCode;
  /** For `died`: oom, killed, expired, daemon_lost, unanswered, relay, forged; for `start_failed`: wrong_env, open_network, refused_option. */
  readonly sub: string | undefined;
  /** A process in the environment did this, and not the machine, the engine or a person outside. False wherever that is not proven. */
  readonly fromWithin: boolean;
  /** Of a start: the engine asked to come again, and the same may go well in a moment. */
  readonly again: boolean;
  readonly evidence: Readonly<Record<string, unknown>>;
  constructor(
    code: EnvironmentErrorCode,
    message: string,
    more: {
      sub?: string;
      fromWithin?: boolean;
      again?: boolean;
      evidence?: Record<string, unknown>;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: more.cause });
    this.code = code;
    this.sub = more.sub;
    this.fromWithin = more.fromWithin ?? false;
    this.again = more.again ?? false;
    this.evidence = more.evidence ?? {};
  }
}

/** The engine or cluster did not answer: nothing is said about the work that ran there. */
export const isLoss = (error: unknown): error is EnvironmentError =>
  error instanceof EnvironmentError && (error.code === 'daemon_lost' || error.sub === 'daemon_lost');

/** The owner of a container: the labels a reaper reads. */
export interface Owner {
  readonly run: string;
  /** When the run was recorded, as its record says it; absent for what belongs to no recorded run. */
  readonly runCreated?: string;
  /** TRIAL.NUMBER: known before the attempt begins, so that its container can be started ahead. */
  readonly attempt: string;
  readonly pid: number;
  /** Process start time in clock ticks since boot, so that a reused pid is not mistaken for the owner. */
  readonly pidStart: string;
  readonly bootId: string;
  readonly host: string;
  /** Pids of another one mean nothing here; absent where the system has none. */
  readonly pidNamespace?: string;
}

export interface StartRequest {
  readonly instanceId: string;
  readonly image: string;
  readonly owner: Owner;
  readonly signal?: AbortSignal | undefined;
  /** Rendered `startup_command`: run once after the start and before the snapshot, so that its work is not the agent's. A failure
   *  is EnvironmentError('setup_failed'). */
  readonly startupCommand?: string;
  /** The task's requests for its container beside the configuration. */
  readonly container?: ContainerNeeds | undefined;
  /** Commit the task starts from; used to verify that no later history is left. */
  readonly baseCommit?: string;
  /** Files of this image that are put back before anything runs, where another image has changed them. */
  readonly putBack?:
    | {
        readonly image: string;
        readonly paths: readonly string[];
        /** Files that are emptied then. */
        readonly emptied?: readonly string[];
      }
    | undefined;
  /** Phase names as they begin ('pull', 'start', 'seal'...), for the waterfall. */
  readonly onPhase?: ((phase: string) => void) | undefined;
  /** Connections to the outside as they end, where it reaches hosts of a list. */
  readonly onConnection?: ((connection: EgressConnection) => void) | undefined;
}

/** Changes to the programs and libraries of an image, by absolute path. */
export interface SystemChanges {
  /** Files of the image that are others now, or gone. */
  readonly changed: readonly string[];
  /** New files that come before a program of the image, or are loaded unasked. */
  readonly before: readonly string[];
  /** Small new programs, which are scripts as a rule. */
  readonly small: readonly string[];
  /** There are more than are listed. */
  readonly more: boolean;
  /** Compiled caches of the image's libraries: what loads them takes them for their sources. */
  readonly caches: readonly string[];
  /** Entries of the root that were changed, or below which anything was; absent where they are not known. */
  readonly top?: readonly string[] | undefined;
}

/** Makes environments of one configuration; the runner holds one factory an arm. */
export interface EnvironmentFactory {
  readonly kind: string;
  start(request: StartRequest): Promise<Environment>;
  /** Begins a start that `start` with the same request will take; bounded, may do nothing, never throws. When the request's signal
   *  fires before that, what was begun is removed. */
  prepare(request: StartRequest): void;
  /** Whether an image that `keepWork` made is here. Rejects where the engine does not say it. */
  holdsWork(image: string): Promise<boolean>;
  /** Changes in a kept image to the one that its work began in; undefined where they are not known. */
  systemChanges(image: string): Promise<SystemChanges | undefined>;
  /** Removes an image that `keepWork` made; one that is gone is no error. */
  discardWork(image: string): Promise<void>;
  /** Milliseconds that its engine was away, where nobody else watches that engine: they are no time of an attempt. */
  awayMs(): number;
  /** Releases pooled connections and containers started ahead. */
  close(): Promise<void>;
}
