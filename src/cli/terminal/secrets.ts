/** Which environment variables hold secrets: those the configuration names, those that look like a key, and a proxy's password. */

import { createRedactor, type Redactor, type Secret } from '../../base/text/redact.ts';
import { proxyFrom, proxySecrets } from '../../model/http/proxySettings.ts';

const LOOKS_SECRET = /(_API_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS)$/;

export function loadedSecrets(names: readonly string[]): Secret[] {
  const wanted = new Set(names);
  const named = Object.entries(process.env).flatMap(([name, value]) =>
    value && (wanted.has(name) || LOOKS_SECRET.test(name)) ? [{ name, value }] : [],
  );
  const proxy = proxySecrets(proxyFrom((name) => process.env[name]));
  return [...named, ...proxy.map((value) => ({ name: 'PROXY', value }))];
}

export const environmentRedactor = (names: readonly string[] = []): Redactor =>
  createRedactor(loadedSecrets(names));

let ofTerminal: Redactor | undefined;

/** From now on the terminal is kept free of these too; before, of what the environment alone tells. */
export const keepFromTerminal = (redactor: Redactor): void => {
  ofTerminal = redactor;
};

export const forTerminal = (text: string): string => {
  ofTerminal ??= environmentRedactor();
  return ofTerminal.text(text);
};
