/** How a model of a run is reached: its key, the proxy of this machine, and the rates that processes with one key share. */
import { proxyFrom } from '../model/http/proxySettings.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import type { Store } from '../store/open.ts';
import { type Variables, variable } from './caller.ts';
import { rateBooks } from './record/rateBooks.ts';

export function modelAccess(
  { api_key_env }: Pick<ModelConfig, 'api_key_env'>,
  { store, env }: { readonly store: Store; readonly env: Variables },
) {
  const secret = (name: string) => variable(env, name);
  const apiKey = secret(api_key_env);
  const proxy = proxyFrom(secret);
  return {
    ...(apiKey !== undefined && { apiKey }),
    ...(proxy && { proxy }),
    rates: rateBooks(store),
    variable: secret,
  };
}
