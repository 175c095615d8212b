/**
 * An agent as the runner sees it. The agent knows no store and no queue: it says what happens through callbacks, and resolves to how it ended.
 */
import type { VariableValues } from '../base/hostVariables.ts';
import type { McpServer, McpTransport } from '../base/mcpServer.ts';
import type { CommandResult, Environment } from '../environment/environment.ts';
import type { Libc } from '../environment/programs/program.ts';
import type { DialectName } from '../model/dialects/dialects.ts';
import type { CallRecord, Message, Model, ProviderErrorMetadata } from '../model/model.ts';
import type { AgentConfig } from './agentConfig.ts';
import type { PlacedEquipment } from './equipment.ts';
import type { AgentErrorResponse } from './errors.ts';
import type { ArmGateway, GatewayCall } from './gateway/gateway.ts';

export interface AgentContext {
  readonly instanceId: string;
  /** Steps begun so far. */
  readonly step: number;
  /** Several calls may be out at a time: which one is meant. The built-in agent makes one after the other. */
  readonly call?: number;
  /** The purpose of a call that is none of the agent's own turns: subagent:ID, title, count_tokens. */
  readonly label?: string;
}

export interface CommandRecord {
  readonly step: number;
  /** Position within the turn: several tool calls may come in one reply. */
  readonly index: number;
  readonly command: string;
  /** The code of a program's command is null where the program does not tell it. */
  readonly result: Omit<CommandResult, 'exitCode'> & { readonly exitCode: number | null };
  readonly startedAt: number;
}

/** A call of an installed program, and which messages of the record it added. */
export interface ProgramCallRecord {
  readonly call: GatewayCall;
  /** The call's label, as `onCallBegan` names it. */
  readonly label: string | null;
  readonly firstMessage: number;
  /** The answer is the last message; null where none came. */
  readonly replyMessage: number | null;
}

/**
 * `onMessage`, `onCommand`, `onProgramCall`, `onCallWanted`, `onCallBegan` and `onCallEnded` are the record: if one throws, `run` rejects with that
 * error. A request leaves once what `onCallBegan` returned has resolved. The others are for display: what they throw is ignored.
 */
export interface AgentCallbacks {
  onMessage?(ctx: AgentContext, message: Message, index: number): void;
  onCommand?(ctx: AgentContext, command: CommandRecord): void;
  /** After its messages: a call of a program that was answered, or failed for good. */
  onProgramCall?(ctx: AgentContext, call: ProgramCallRecord): void;
  /** Before a call that may cost money: resolves when it may be made; `waits` is called where that takes a while. */
  onCallWanted?(
    ctx: AgentContext,
    estimateNano: number | null,
    signal: AbortSignal | undefined,
    waits: () => void,
  ): Promise<void>;
  onCallBegan?(
    ctx: AgentContext,
    call: { try: number; modelAsked: string; startedAt: number; estimateNano: number | null },
  ): void | Promise<void>;
  onCallEnded?(ctx: AgentContext, call: CallRecord): void;
  onStep?(ctx: AgentContext): void;
  /** 'model', 'rate_wait', 'backoff', 'exec'. */
  onPhase?(ctx: AgentContext, phase: string): void;
  onError?(ctx: AgentContext, error: AgentErrorResponse): void;
  /** A sentence that stays with the attempt. */
  onNote?(text: string): void;
  onDebug?(message: string, data?: Readonly<Record<string, unknown>>): void;
}

/** exitStatus is mini-swe-agent's word: Submitted, LimitsExceeded, TimeExceeded, RepeatedFormatError, or the name of a terminating exception. */
export interface AgentResult {
  readonly exitStatus: string;
  /** The submitted text; '' when nothing was submitted. */
  readonly submission: string;
  /** The submitted bytes, byte-exact; absent when nothing was submitted. */
  readonly submissionBytes?: Uint8Array;
  /** Which limit ended it: steps, cost, tokens, wall_time, format_errors, empty_responses, command_timeouts. */
  readonly limit?: string;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly metadata?: ProviderErrorMetadata;
  };
  /** The messages, without raw outputs and responses where `onMessage` was given them; else whole. */
  readonly messages: readonly Message[];
  readonly steps: number;
  readonly costNano: number | null;
  /** Milliseconds of its wall-clock limit that it used; absent: all that passed. */
  readonly workedMs?: number;
  /** Facts that an installed program left, such as its exit code, for the record; they decide nothing. */
  readonly evidence?: Readonly<Record<string, unknown>>;
}

export interface Agent {
  /**
   * Works on the task until a terminating condition. Resolves for everything that the seeds call an end, rejects for
   * EnvironmentError, AbortError and defects: the slot handles those.
   */
  run(task: string, extraVars?: Readonly<Record<string, unknown>>): Promise<AgentResult>;
}

/** The solution that a task brings, ready to be applied where an agent would work. */
export interface Solution {
  /** `timeoutS` is 0 for no limit. Rejects for EnvironmentError and AbortError alone. */
  apply(
    environment: Environment,
    at: {
      readonly timeoutS: number;
      readonly signal?: AbortSignal | undefined;
      /** Variables of this machine, by name. */
      readonly variables?: VariableValues | undefined;
    },
  ): Promise<SolutionEnd>;
}

export interface SolutionEnd {
  /** A sentence for people. */
  readonly says: string;
  readonly timedOut: boolean;
  /** A patch that could not be applied to the work tree, and is graded in its place. */
  readonly submission?: string;
}

export type SelectHistory = (messages: readonly Message[]) => readonly Message[];
export type Summarize = (text: string) => Promise<string>;

export interface AgentParts {
  readonly instanceId: string;
  readonly model: Model;
  readonly environment: Environment;
  /** The gateway that answers the calls of agents that are programs. */
  readonly gateway?: ArmGateway | undefined;
  readonly config: AgentConfig;
  /** Servers of tools that the task and the arm give the agent; only for agents that take them. */
  readonly mcpServers?: readonly McpServer[];
  /** Instructions and skills of the arm, where they are in the environment. */
  readonly equipment?: PlacedEquipment | undefined;
  /** Only for a kind that `solves`. */
  readonly solution?: Solution | undefined;
  readonly callbacks?: AgentCallbacks;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds, monotonic; a test passes its own. */
  readonly now?: () => number;
  /** Selects the messages of the history that a request carries; default: all. If it fails, the attempt goes on. */
  readonly selectHistory?: SelectHistory;
  /** Shortens a long output before the template sees it; default: the template shortens it. If it fails, the attempt goes on. */
  readonly summarize?: Summarize;
}
export type CreateAgent = (parts: AgentParts) => Agent;

/** A package of npm, and the folder of the program that its files go to. */
export interface WantedPackage {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
  /** The licence where the registry names none; default: the agent's. */
  readonly licence?: string;
}

/** The packages of a program. Its makers own them: users fetch them, and nothing of them is passed on. */
export interface AgentPackages {
  /** The program's licence, where a package does not say it. */
  readonly licence: string;
  readonly variants: readonly { readonly libc: Libc | null; readonly packages: readonly WantedPackage[] }[];
}

/** The architecture as Node and npm call it. */
export type PackageArchitecture = 'x64' | 'arm64';

export interface AgentProblem {
  readonly message: string;
  readonly fix: string;
}

/** A class of agents as the core sees it; `agents.ts` has a line for each. A module of the user's has `create` only. */
export interface AgentKind {
  readonly create: CreateAgent;
  /** The agent's changes of the work tree are its patch, whatever `run.patch` says, unless it submits bytes. */
  readonly leavesPatch?: boolean;
  /** The agent is given the solution of its task, and works on no task without one. */
  readonly solves?: boolean;
  /** The agent never asks through the gateway, which is then not loaded. */
  readonly asksItself?: boolean;
  /** The agent begins with system_template and instance_template; a default for them would be made up. */
  readonly prompted?: boolean;
  /** The protocol in which the agent asks its model through the gateway; null: any; absent: it asks the model of its arm itself. */
  readonly dialect?: DialectName | null;
  /** The ways in which the agent reaches servers of tools; absent: it is given none. */
  readonly mcp?: readonly McpTransport[];
  /** The way to instructions and skills: the agent looks where they are put, or its line names the places; absent: it gets none. */
  readonly equipment?: 'found' | 'named';
  /** The packages that `agents add` fetches and containers get; absent: the agent brings none. */
  packages?(version: string, arch: PackageArchitecture): AgentPackages;
  /** Containers get what `agent.program` names, which its user added. */
  readonly takesProgram?: boolean;
  /** The setting that its configuration lacks. */
  missing?(config: AgentConfig): AgentProblem | null;
}
