/** The proxy between this machine and the provider, as the usual variables name it. The CLI alone reads the environment. */

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
