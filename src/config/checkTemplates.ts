/** Checks the names in every template of a configuration and renders it once, before anything is started or paid. */
import type { AgentConfig } from '../agent/agentConfig.ts';
import { type TemplateSlot, templatesOf } from '../agent/loop/templates.ts';
import { sampleContexts } from '../agent/templateContext.ts';
import { checkTemplate } from '../template/check.ts';
import { compileTemplate, render } from '../template/render.ts';

export function templateProblems(config: AgentConfig): string[] {
  const { prompt_template: prompt = '', command = '' } = config;
  return [
    ...Object.entries(templatesOf(config)).flatMap(([slot, template]) =>
      problemsOf(`agent.${slot}_template`, template, sampleContexts(slot as TemplateSlot, config)),
    ),
    ...problemsOf('agent.prompt_template', prompt, sampleContexts('instance', config)),
    ...problemsOf('agent.command', command, [{ task: 'task text', prompt_file: '/prompt', model: 'model' }]),
  ];
}

function problemsOf(key: string, template: string, contexts: readonly Record<string, unknown>[]): string[] {
  const names = new Set(contexts.flatMap((context) => Object.keys(context)));
  const problems = checkTemplate(template, names);
  if (problems.length > 0) return problems.map((problem) => `${key}: ${problem}`);
  return renderProblem(key, template, contexts);
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
