/** `agent.agent_class`: the built-in agent, an installed one, or a module of the user's that exports createAgent. */
import { importUserModule, type UserModule } from '../userModule.ts';
import type { CreateAgent } from './contract.ts';
import { type AgentErrorResponse, type AgentResponse, errorResponse, successResponse } from './errors.ts';
import { installedAgent } from './installed/installedAgent.ts';
import { installedProgram } from './installed/programs.ts';
import { createAgent } from './loop/agent.ts';

/** Throws an Error with a message for people when the module cannot be used. */
export async function loadAgent(agentClass: string, cwd: string): Promise<CreateAgent> {
  const found = await findAgent(agentClass, cwd);
  if (!found.success) throw new Error(found.message, { cause: found.metadata?.originalError });
  return found.result;
}

/** Never throws: what is wrong with a module comes back as INITIALIZATION_ERROR, before anything is started. */
export async function findAgent(agentClass: string, cwd: string): Promise<AgentResponse<CreateAgent>> {
  if (agentClass === 'default') return successResponse(createAgent, 'the built-in agent');
  const program = installedProgram(agentClass);
  if (program) return successResponse(installedAgent(program), agentClass);
  let module: UserModule;
  try {
    module = await importUserModule('agent.agent_class', agentClass, cwd);
  } catch (error) {
    return failed((error as Error).message, (error as Error).cause);
  }
  if (typeof module.createAgent !== 'function')
    return failed(
      `agent.agent_class: ${agentClass} exports no createAgent; docs/extension.md has an example`,
    );
  return successResponse(module.createAgent as CreateAgent, agentClass);
}

const failed = (message: string, originalError?: unknown): AgentErrorResponse =>
  errorResponse('INITIALIZATION_ERROR', message, originalError === undefined ? undefined : { originalError });
