/** Connections through the proxy between this machine and the provider, when there is one. */
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import type { ProxySettings } from './proxySettings.ts';

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
    // Also to a server that speaks plain HTTP: a proxy that is asked for the whole answer may change or keep it.
    proxyTunnel: true,
    // `connect` is not read for a proxy: its limit is set here.
    proxyTls: options.connect as { timeout?: number },
  });
}

/** The status with which a proxy refused its tunnel, which undici tells in a text alone. */
export function proxyRefusal(error: unknown): number | null {
  const status = /^Proxy response \((\d+)\)/.exec((error as Error | null)?.message ?? '')?.[1];
  return status === undefined ? null : Number(status);
}
