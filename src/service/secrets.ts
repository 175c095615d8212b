/** Which variables hold secrets: those the configuration names, those that look like a key, and a proxy's password. */
import { createRedactor, type Redactor, type Secret } from '../base/text/redact.ts';
import { proxyFrom, proxySecrets } from '../model/http/proxySettings.ts';
import type { Variables } from './caller.ts';

const LOOKS_SECRET = /(_API_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS)$/;

export function loadedSecrets(env: Variables, names: readonly string[]): Secret[] {
  const wanted = new Set(names);
  const named = Object.entries(env).flatMap(([name, value]) =>
    value && (wanted.has(name) || LOOKS_SECRET.test(name)) ? [{ name, value }] : [],
  );
  const proxy = proxySecrets(proxyFrom((name) => env[name]));
  return [...named, ...proxy.map((value) => ({ name: 'PROXY', value }))];
}

export const redactorOf = (env: Variables, names: readonly string[] = []): Redactor =>
  createRedactor(loadedSecrets(env, names));
