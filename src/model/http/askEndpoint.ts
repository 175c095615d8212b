/**
 * Asks an endpoint for its models before a run: is somebody there, is the key taken, is the model served. A list of models costs nothing
 * at any provider.
 */
import { connect } from 'node:net';
import { isRecord } from '../../base/isRecord.ts';
import { redactor, snippet } from '../../base/text/redact.ts';
import { dialectOf } from '../clouds/chooseCloud.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { addressWithReferences, withReferences } from '../namedCredentials.ts';
import { namedModel } from '../names.ts';
import type { ProxySettings } from './proxySettings.ts';

const CONNECT_MS = 5000;
const ANSWER_MS = 20_000;
const SHOWN = 5;

export type EndpointAnswer =
  | { readonly ok: true; readonly detail: string }
  | { readonly ok: false; readonly detail: string; readonly fix: string };

/** True when the machine is there and nobody listens: no retry of a run would change that soon. */
export function refusesConnections(baseUrl: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(baseUrl);
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port) || (protocol === 'https:' ? 443 : 80),
      timeout: CONNECT_MS,
    });
    const end = (refused: boolean) => {
      socket.destroy();
      resolve(refused);
    };
    socket.once('connect', () => end(false));
    socket.once('timeout', () => end(false));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED'));
  });
}

/** The path of a dialect's list of models, from the path of its answers. */
const listPath = (path: string): string =>
  path.includes(':') ? '/models' : path.replace(/(chat\/completions|responses|messages)$/, 'models');

const FIX_ADDRESS = 'start the server, or correct model.base_url (or the variable that names the address)';

/** Names of a list in the forms of OpenAI, Anthropic and Google. */
function namesIn(text: string): string[] | null {
  try {
    const body: unknown = JSON.parse(text);
    const list = isRecord(body) ? (body.data ?? body.models) : body;
    if (!Array.isArray(list)) return null;
    return list.flatMap((one: unknown) => {
      const name = isRecord(one) ? (one.id ?? one.name) : null;
      return typeof name === 'string' ? [name.replace(/^models\//, '')] : [];
    });
  } catch {
    return null;
  }
}

/** `vendor/model:free` is a way to ask for `vendor/model`. */
const serves = (names: readonly string[], model: string): boolean =>
  names.includes(model) || names.includes(model.replace(/:\w+$/, ''));

export async function askEndpoint(
  config: ModelConfig,
  variable: (name: string) => string | undefined,
  proxy?: ProxySettings,
): Promise<EndpointAnswer> {
  // The HTTP client takes a tenth of the time in which the program starts, and most lines ask no endpoint.
  const { addressUnder, createTransport, newExchange } = await import('./httpTransport.ts');
  const { kwargs, secrets } = withReferences(config.model_kwargs, variable);
  const sent = { ...config, model_kwargs: kwargs };
  const model = namedModel(config).sentAs;
  const apiKey = variable(config.api_key_env) ?? 'none';
  const { path, headers } = (await dialectOf(sent)).target(sent, model, apiKey);
  const asked = addressWithReferences(namedModel(config).address ?? '', variable);
  const redact = redactor([apiKey, ...secrets, ...asked.secrets]);
  const deadlines = { connectMs: CONNECT_MS, firstByteMs: ANSWER_MS, idleMs: ANSWER_MS, totalMs: ANSWER_MS };
  const transport = createTransport(deadlines, proxy);
  const get = async (where: string) => {
    const exchange = newExchange();
    await transport.fetch(addressUnder(asked.address, where), { headers, exchange } as RequestInit);
    return exchange;
  };
  try {
    const list = await get(listPath(path));
    const said = snippet(list.text, redact);
    const host = new URL(asked.address).host;
    if (list.status === 401 || list.status === 403)
      return {
        ok: false,
        detail: `${host} does not take the key (${list.status})`,
        fix: `check $${config.api_key_env}`,
      };
    if (list.status === null || list.status >= 500)
      return {
        ok: false,
        detail: `${host} answers with a fault (${list.status}): ${said}`,
        fix: FIX_ADDRESS,
      };
    const names = list.status === 200 ? namesIn(list.text) : null;
    if (names === null) return { ok: true, detail: `${host} answers; it has no list of models` };
    if (serves(names, model)) return { ok: true, detail: `${host} serves ${model}` };
    // A list may leave names out that stand for others.
    const one = await get(`${listPath(path)}/${encodeURIComponent(model)}`);
    if (one.status === 200) return { ok: true, detail: `${host} knows ${model}` };
    const some = names.slice(0, SHOWN).join(', ');
    return {
      ok: false,
      detail: `${host} does not serve "${model}"`,
      fix: `correct the name; it serves ${some || 'nothing'}${names.length > SHOWN ? `, and ${names.length - SHOWN} more` : ''}`,
    };
  } catch (error) {
    return { ok: false, detail: redact((error as Error).message), fix: FIX_ADDRESS };
  } finally {
    await transport.close();
  }
}
