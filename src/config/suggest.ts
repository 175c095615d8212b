/** The known name that a misspelt one most likely means. */

import { closest } from '../base/text/closest.ts';

/** Words that other tools use for the same thing. */
const SYNONYMS: Readonly<Record<string, string>> = {
  max_iterations: 'step_limit',
  max_steps: 'step_limit',
  max_turns: 'step_limit',
  max_cost: 'cost_limit',
  budget: 'cost_limit',
  time_limit: 'wall_time_limit_seconds',
  name: 'model_name',
  api_base: 'base_url',
  api_key: 'api_key_env',
  num_workers: 'workers',
  temperature: 'model_kwargs',
  max_tokens: 'model_kwargs',
  working_dir: 'cwd',
  prompt: 'instance_template',
};

export function suggest(name: string, known: readonly string[]): string | null {
  const synonym = SYNONYMS[name];
  if (synonym && known.includes(synonym)) return synonym;
  return closest(name, known);
}
