/** The installed agents by the names that `agent.agent_class` takes. */
import { type AddableAgent, parseAgentSpec } from './agentPackages.ts';
import { claudeCode } from './claudeCode.ts';
import { codex } from './codex.ts';
import { commandAgent } from './commandAgent.ts';
import { geminiCli } from './geminiCli.ts';
import type { InstalledProgram } from './launch.ts';
import { openCode } from './openCode.ts';

const PROGRAMS: Readonly<Record<AddableAgent, InstalledProgram>> = {
  codex,
  'claude-code': claudeCode,
  opencode: openCode,
  'gemini-cli': geminiCli,
};

/** undefined for the built-in agent and for modules. */
export function installedProgram(agentClass: string): InstalledProgram | undefined {
  if (agentClass === 'command') return commandAgent;
  const spec = parseAgentSpec(agentClass);
  return spec ? PROGRAMS[spec.agent] : undefined;
}
