/** The text that an installed agent gets as its task. */
import { float } from '../../base/python/values.ts';
import { render, type Vars } from '../../template/render.ts';
import { PROMPT_TEMPLATE } from '../agentConfig.ts';
import type { AgentParts } from '../contract.ts';

/** The names are those of the built-in agent's templates, at a time when nothing has been used yet. */
export function promptOf({ config, environment, model }: AgentParts, task: string, extraVars: Vars): string {
  return render(config.prompt_template ?? PROMPT_TEMPLATE, {
    ...config,
    ...environment.templateVars(),
    ...model.templateVars(),
    ...{ n_model_calls: 0, model_cost: float(0), elapsed_seconds: 0 },
    task,
    ...extraVars,
  });
}
