/** The proxy between this machine and the provider, as the usual variables name it. Who reads the environment is the CLI. */
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';

export interface ProxySettings {
  /** URL of the proxy for http:// and for https://; empty for none. */
  readonly http: string;
  readonly https: string;
  /** Hosts that are asked directly, separated by commas. */
  readonly except: string;
}

/** HTTPS_PROXY, HTTP_PROXY, NO_PROXY in either case; small letters win, as in curl. Undefined when no proxy is named. */
export function proxyFrom(variable: (name: string) => string | undefined): ProxySettings | undefined {
  const read = (name: string) => variable(name.toLowerCase()) || variable(name) || '';
  const settings = { http: read('HTTP_PROXY'), https: read('HTTPS_PROXY'), except: read('NO_PROXY') };
  return settings.http || settings.https ? settings : undefined;
}

/** A proxy's URL may carry a password. */
export const proxySecrets = (proxy: ProxySettings | undefined): string[] =>
  [proxy?.http, proxy?.https].flatMap((text) => {
    if (!text || !URL.canParse(text)) return [];
    const { password } = new URL(text);
    return password ? [password, decodeURIComponent(password)] : [];
  });

/** A server on this machine is never asked through a proxy. */
const LOOPBACK = 'localhost,127.0.0.1,[::1]';

export function dispatcherFor(options: Agent.Options, proxy: ProxySettings | undefined): Dispatcher {
  if (!proxy) return new Agent(options);
  const { http, https, except } = proxy;
  return new EnvHttpProxyAgent({
    ...options,
    httpProxy: http,
    // undici takes the http proxy for https too when this one is empty, which nobody who left it out means.
    httpsProxy: https,
    noProxy: except.trim() === '*' ? '*' : [except, LOOPBACK].filter(Boolean).join(','),
    // `connect` is not read for a proxy: its limit is set here.
    proxyTls: options.connect as { timeout?: number },
  });
}

/** The status with which a proxy refused its tunnel, which undici tells in a text alone. */
export function proxyRefusal(error: unknown): number | null {
  const status = /^Proxy response \((\d+)\)/.exec((error as Error | null)?.message ?? '')?.[1];
  return status === undefined ? null : Number(status);
}
