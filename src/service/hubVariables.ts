/** The settings of the Hugging Face hub among the caller's variables. */
import { HUB_VARIABLES, type HubAccessEnv } from '../dataset/hub/hubAccess.ts';
import { type Variables, variable } from './caller.ts';

export const hubVariables = (env: Variables): HubAccessEnv =>
  Object.fromEntries(HUB_VARIABLES.map((name) => [name, variable(env, name)]));
