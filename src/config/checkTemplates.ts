/** Checks the names in every template of a configuration and renders it once, before anything is started or paid. */
import type { AgentConfig } from '../agent/agentConfig.ts';
import { type TemplateSlot, templatesOf } from '../agent/loop/templates.ts';
import { sampleContexts } from '../agent/templateContext.ts';
import { checkTemplate } from '../template/check.ts';
import { compileTemplate, render } from '../template/render.ts';

export function templateProblems(config: AgentConfig): string[] {
  return Object.entries(templatesOf(config)).flatMap(([slot, template]) => {
    const key = `agent.${slot}_template`;
    const contexts = sampleContexts(slot as TemplateSlot, config);
    const names = new Set(contexts.flatMap((context) => Object.keys(context)));
    const problems = checkTemplate(template, names);
    if (problems.length > 0) return problems.map((problem) => `${key}: ${problem}`);
    return renderProblem(key, template, contexts);
  });
}

function renderProblem(
  key: string,
  template: string,
  contexts: readonly Record<string, unknown>[],
): string[] {
  for (const context of contexts) {
    try {
      render(template, context);
    } catch (error) {
      return [`${key}: ${(error as Error).message}`];
    }
  }
  return [];
}

/** Checks only the syntax: its names are columns of the dataset, which are not known yet. */
export function startupCommandProblems(command: string | undefined): string[] {
  if (command === undefined) return [];
  try {
    compileTemplate(command);
    return [];
  } catch (error) {
    return [`environment.startup_command: ${(error as Error).message}`];
  }
}
