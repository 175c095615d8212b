/**
 * Which values are secrets: keys that the configuration names, those of clouds, the hub's token, passwords of proxies, and variables listed in
 * SWEBATCH_SECRETS (separated by commas). Also variables with the name of a secret whose value looks like one: hiding the value of
 * `DB_PASSWORD=sunday` would damage every log that mentions a day.
 */
import { isOfWords, looksLikeKey } from '../base/text/keyShapes.ts';
import { createRedactor, type Redactor, type Secret, SHORTEST } from '../base/text/redact.ts';
import { proxyFrom, proxySecrets } from '../model/http/proxySettings.ts';
import type { ArmRow } from '../store/records/runs.ts';
import { storedArm } from '../store/records/storedConfig.ts';
import type { Variables } from './caller.ts';

const SECRET_NAME = /(_API_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS)$/;
const HUB_TOKENS = ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'];
/** What the clouds read themselves (model/clouds). */
const CLOUD_SECRETS = [
  ...['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_BEARER_TOKEN_BEDROCK'],
  ...['AZURE_CLIENT_SECRET', 'AZURE_AD_TOKEN', 'GOOGLE_OAUTH_ACCESS_TOKEN'],
];

export function loadedSecrets(env: Variables, names: readonly string[]): Secret[] {
  const named = (env.SWEBATCH_SECRETS ?? '').split(',').map((name) => name.trim());
  const sure = new Set([...names, ...named, ...HUB_TOKENS, ...CLOUD_SECRETS]);
  const held = Object.entries(env).flatMap(([name, value]) =>
    value && (sure.has(name) || (SECRET_NAME.test(name) && looksLikeKey(value))) ? [{ name, value }] : [],
  );
  const proxy = proxySecrets(proxyFrom((name) => env[name]));
  return [...held, ...proxy.map((value) => ({ name: 'PROXY', value }))];
}

export const redactorOf = (env: Variables, names: readonly string[] = []): Redactor =>
  createRedactor(loadedSecrets(env, names));

/** The variables that the arms of a recorded run take their keys from. */
export const keyVariablesOf = (arms: readonly Pick<ArmRow, 'config'>[]): string[] =>
  arms.flatMap((arm) => {
    const name = storedArm(arm).model?.api_key_env;
    return typeof name === 'string' ? [name] : [];
  });

/** Names of secrets whose values are ordinary words, which other texts contain by chance. */
export function ordinarySecrets(env: Variables, names: readonly string[]): string[] {
  const ordinary = loadedSecrets(env, names).filter(
    ({ value }) => value.length >= SHORTEST && isOfWords(value),
  );
  return [...new Set(ordinary.map(({ name }) => name))];
}
