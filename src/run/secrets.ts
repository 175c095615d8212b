/**
 * Values that are secrets: keys that the configuration names, those of clouds, the hub's token, passwords of proxies, and variables listed in
 * SWEBATCH_SECRETS (separated by commas). Also variables with the name of a secret whose value looks like one: hiding the value of
 * `DB_PASSWORD=sunday` would damage every log that mentions a day.
 */
import { recordOf } from '../base/isRecord.ts';
import {
  createRedactor,
  isOrdinary,
  looksLikeKey,
  type Redactor,
  type Secret,
  SHORTEST,
} from '../base/text/redact.ts';
import type { SuiteConfig } from '../config/suiteConfig.ts';
import { proxyFrom, proxySecrets } from '../model/http/proxySettings.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import {
  CONFIGURED,
  credentialParts,
  literalCredentials,
  literalsInAddress,
  meansCredential,
  referencesIn,
  referencesInAddress,
} from '../model/namedCredentials.ts';
import { type ArmRow, type RunRow, storedArm, storedConfig } from '../store/records/runs.ts';
import type { Caller, Variables } from './caller.ts';
import type { ArmConfig } from './plan/planRecord.ts';

const SECRET_NAME = /(_API_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS)$/;
const HUB_TOKENS = ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'];
/** Variables that the clouds read themselves (model/clouds). */
const CLOUD_SECRETS = [
  ...['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_BEARER_TOKEN_BEDROCK'],
  ...['AZURE_CLIENT_SECRET', 'AZURE_AD_TOKEN', 'GOOGLE_OAUTH_ACCESS_TOKEN'],
];

/** The variables that a model takes its key and other credentials from, and credentials that its configuration holds itself. */
function secretsOfModel({ api_key_env, base_url, model_kwargs = {} }: Partial<ModelConfig>) {
  return {
    names: [
      ...(api_key_env === undefined ? [] : [api_key_env]),
      ...[...referencesIn(model_kwargs), ...referencesInAddress(base_url)].map(({ name }) => name),
    ],
    literals: [
      ...literalCredentials(model_kwargs).map((value) => ({ name: 'model_kwargs', value })),
      ...literalsInAddress(base_url).map(({ value }) => ({ name: 'base_url', value })),
    ],
  };
}

export function loadedSecrets(env: Variables, names: readonly string[]): Secret[] {
  const named = (env.SWEBATCH_SECRETS ?? '').split(',').map((name) => name.trim());
  const sure = new Set([...names, ...named, ...HUB_TOKENS, ...CLOUD_SECRETS]);
  const held = Object.entries(env).flatMap(([name, value]) =>
    value &&
    (sure.has(name) || name.startsWith(CONFIGURED) || (SECRET_NAME.test(name) && looksLikeKey(value)))
      ? credentialParts(value).map((part) => ({ name, value: part }))
      : [],
  );
  const proxy = proxySecrets(proxyFrom((name) => env[name]));
  return [...held, ...proxy.map((value) => ({ name: 'PROXY', value }))];
}

export const redactorOf = (env: Variables): Redactor => createRedactor(loadedSecrets(env, []));

/** A redactor of the secrets of these models, and of the variables that tasks may have. */
export function redactorOfModels(
  env: Variables,
  models: readonly Partial<ModelConfig>[],
  suite?: Pick<SuiteConfig, 'env'> & { readonly judge?: Partial<ModelConfig> | undefined },
): Redactor {
  const secrets = [...models, ...(suite?.judge ? [suite.judge] : [])].map(secretsOfModel);
  const names = [...secrets.flatMap((one) => one.names), ...(suite?.env ?? [])];
  return createRedactor([...loadedSecrets(env, names), ...secrets.flatMap((one) => one.literals)]);
}

/** A redactor of the secrets of a recorded run. */
export function redactorOfArms(
  env: Variables,
  run: Pick<RunRow, 'config'>,
  arms: readonly Pick<ArmRow, 'config'>[],
): Redactor {
  const { env: names, judge } = recordOf(storedConfig(run).suite);
  return redactorOfModels(
    env,
    arms.map((arm) => recordedModel(storedArm(arm).model)),
    {
      env: Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [],
      judge: recordedModel(judge),
    },
  );
}

/** Any key may be missing. */
function recordedModel(model: unknown): Partial<ModelConfig> {
  const { api_key_env: name, base_url: address, model_kwargs: kwargs } = recordOf(model);
  return {
    ...(typeof name === 'string' && { api_key_env: name }),
    ...(typeof address === 'string' && { base_url: address }),
    model_kwargs: recordOf(kwargs),
  };
}

/** Names of secrets whose values are ordinary words, which other texts contain by chance. */
export function ordinarySecrets(env: Variables, given: readonly (string | Partial<ModelConfig>)[]): string[] {
  const names = given.flatMap((one) => (typeof one === 'string' ? [one] : secretsOfModel(one).names));
  const ordinary = loadedSecrets(env, names).filter(
    ({ value }) => value.length >= SHORTEST && isOrdinary(value),
  );
  return [...new Set(ordinary.map(({ name }) => name))];
}

/** The secrets of a run. The caller gets them before anything is told, and hears of values that nothing hides well. */
export function keepSecrets(
  { arms, suite }: { readonly arms: readonly ArmConfig[]; readonly suite?: SuiteConfig | undefined },
  { env, keepSecret, tell }: Caller,
): Redactor {
  const models = arms.map((arm) => arm.model);
  const redactor = redactorOfModels(env, models, suite);
  keepSecret?.(redactor);
  for (const name of ordinarySecrets(env, [...models, ...(suite?.env ?? [])]))
    tell({
      level: 'warning',
      text: `the value of $${name} is an ordinary word: it is replaced wherever it occurs in messages and output`,
    });
  // Variables of the containers whose names mean a credential.
  const open = arms.flatMap(({ environment }) =>
    Object.entries(environment.env).flatMap(([name, value]) =>
      value !== '' && meansCredential(name) ? [name] : [],
    ),
  );
  for (const name of new Set(open))
    tell({
      level: 'warning',
      text: `environment.env.${name} goes into every container, where the agent can read it, and stands in the record as it is`,
    });
  return redactor;
}
