/**
 * The agents that `agent.agent_class` names: one line each, loaded when an arm first asks for it. Everything else is the path of a module
 * that exports createAgent.
 */

import type { McpServer } from '../base/mcpServer.ts';
import { nearest } from '../base/text/closest.ts';
import { importUserModule, isModulePath, type UserModule } from '../userModule.ts';
import type { AgentKind, CreateAgent } from './contract.ts';
import { type AgentErrorResponse, type AgentResponse, errorResponse, successResponse } from './errors.ts';
import { userAgent } from './userAgent.ts';

interface AgentEntry {
  load(): Promise<AgentKind>;
  /** A version that exists, for texts of help, of a program that is fetched by its name and version. */
  readonly version?: string;
  /** The agent asks no model, and its arm names none: its predictions carry this name. */
  readonly asksNoModel?: string;
}

const AGENTS: Readonly<Record<string, AgentEntry>> = {
  default: { load: async () => (await import('./loop/agent.ts')).builtInAgent },
  codex: { version: '0.169.0', load: async () => (await import('./installed/codex.ts')).codex },
  'claude-code': {
    version: '2.1.330',
    load: async () => (await import('./installed/claudeCode.ts')).claudeCode,
  },
  opencode: { version: '1.18.33', load: async () => (await import('./installed/openCode.ts')).openCode },
  'gemini-cli': { version: '0.61.0', load: async () => (await import('./installed/geminiCli.ts')).geminiCli },
  command: { load: async () => (await import('./installed/commandAgent.ts')).commandAgent },
  acp: { load: async () => (await import('./installed/acpAgent.ts')).acpAgent },
  oracle: { asksNoModel: 'gold', load: async () => (await import('./oracle.ts')).oracle },
  nop: { asksNoModel: 'nop', load: async () => (await import('./oracle.ts')).nop },
};

export const AGENT_NAMES: readonly string[] = Object.keys(AGENTS);

/** Agents that `agents add` fetches. */
export const FETCHED: readonly string[] = Object.keys(AGENTS).filter((name) => AGENTS[name]!.version);
/** A fetched agent with its version, for texts of help. */
export const EXAMPLE = `${FETCHED[0]}@${AGENTS[FETCHED[0]!]!.version}`;

interface AgentSpec {
  readonly agent: string;
  /** Undefined: the one that was added. */
  readonly version: string | undefined;
}

/** `codex` or `codex@0.169.0`; null for everything that is not fetched. */
export function parseAgentSpec(text: string): AgentSpec | null {
  const at = text.indexOf('@');
  const agent = at < 0 ? text : text.slice(0, at);
  if (!FETCHED.includes(agent)) return null;
  if (at < 0) return { agent, version: undefined };
  const version = text.slice(at + 1);
  return /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]{1,40})?$/.test(version) ? { agent, version } : null;
}

/** `qwen` or `qwen@0.24.4`: a program that its user added, or an agent that is fetched. */
export function parseProgram(text: string): AgentSpec {
  const at = text.indexOf('@');
  return at < 0
    ? { agent: text, version: undefined }
    : { agent: text.slice(0, at), version: text.slice(at + 1) };
}

/** undefined: `agentClass` is the path of a module. */
export async function agentNamed(agentClass: string): Promise<AgentKind | undefined> {
  const name = parseAgentSpec(agentClass)?.agent ?? agentClass;
  return Object.hasOwn(AGENTS, name) ? AGENTS[name]!.load() : undefined;
}

/** The name on the predictions of an agent that asks no model; undefined for every other. */
export const nameWithoutModel = (agentClass: string): string | undefined =>
  Object.hasOwn(AGENTS, agentClass) ? AGENTS[agentClass]!.asksNoModel : undefined;

/** Never throws: a fault of a module comes back as INITIALIZATION_ERROR, before anything is started. */
export async function findAgent(agentClass: string, cwd: string): Promise<AgentResponse<AgentKind>> {
  const named = await agentNamed(agentClass);
  if (named) return successResponse(named, agentClass);
  let module: UserModule;
  try {
    module = await importUserModule({ key: 'agent.agent_class', what: 'agent' }, agentClass, cwd);
  } catch (error) {
    const near = isModulePath(agentClass) ? '' : nearest(agentClass, AGENT_NAMES);
    return failed((error as Error).message + near, (error as Error).cause);
  }
  if (typeof module.createAgent !== 'function')
    return failed(
      `agent.agent_class: ${agentClass} exports no createAgent; docs/extension.md has an example`,
    );
  const create = userAgent({ what: 'agent', path: agentClass }, module.createAgent as CreateAgent);
  return successResponse({ create }, agentClass);
}

const failed = (message: string, originalError?: unknown): AgentErrorResponse =>
  errorResponse('INITIALIZATION_ERROR', message, originalError === undefined ? undefined : { originalError });

/** Throws an Error with a message for people when the module cannot be used. */
export async function loadAgent(agentClass: string, cwd: string): Promise<AgentKind> {
  const found = await findAgent(agentClass, cwd);
  if (!found.success) throw new Error(found.message, { cause: found.metadata?.originalError });
  return found.result;
}

/** The reason why an agent cannot work with the servers of tools of a task, as a clause; undefined where it takes all of them. */
export async function refusalOfServers(
  agentClass: string,
  servers: readonly McpServer[],
): Promise<string | undefined> {
  // Without a model nobody calls their tools.
  if (servers.length === 0 || nameWithoutModel(agentClass) !== undefined) return undefined;
  const mcp = (await agentNamed(agentClass))?.mcp;
  const agent = agentClass === 'default' ? 'the built-in agent' : `the agent ${agentClass}`;
  if (!mcp) {
    const names = servers.map(({ name }) => name).join(', ');
    return `it has MCP servers (${names}), which ${agent} does not take; ${await takers()} do`;
  }
  const other = servers.find(({ transport }) => !mcp.includes(transport));
  return other && `${agent} does not speak ${other.transport}, as its MCP server ${other.name} does`;
}

async function takers(): Promise<string> {
  const names = Object.keys(AGENTS);
  const kinds = await Promise.all(names.map((name) => AGENTS[name]!.load()));
  return new Intl.ListFormat('en-GB').format(names.filter((_, k) => kinds[k]!.mcp));
}
