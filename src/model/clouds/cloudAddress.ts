/** The address at which a cloud serves a model: it is made of a region, a project or a resource, which variables name. */
import { stripChars } from '../../base/python/text.ts';
import type { DialectName } from '../dialects/dialects.ts';
import type { ModelConfig } from '../modelConfig.ts';
import type { CloudName, NamedModel } from '../names.ts';

type Env = Readonly<Record<string, string | undefined>>;
type SettledCloud =
  | { readonly ok: true; readonly model: ModelConfig }
  | { readonly ok: false; readonly message: string; readonly fix: string };
interface CloudModel {
  readonly model: ModelConfig;
  readonly named: NamedModel;
  readonly env: Env;
  readonly litellm: boolean;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** The value in the configuration under litellm's name, else the first variable that is set. */
const configured = (
  { model, env }: CloudModel,
  kwarg: string,
  variables: readonly string[],
): string | undefined =>
  textOf(model.model_kwargs[kwarg]) ?? variables.map((name) => env[name]).find((value) => textOf(value));

const missing = (
  { model }: CloudModel,
  what: string,
  kwarg: string,
  variables: readonly string[],
): SettledCloud => ({
  ok: false,
  message: `"${model.model_name}" needs ${what}`,
  fix: `export ${variables[0]}=... , or set ${kwarg === 'base_url' ? 'model.base_url' : `model.model_kwargs.${kwarg}`}`,
});

const withAddress = (
  { model }: CloudModel,
  base_url: string,
  dialect: DialectName,
  kwargs: Record<string, string> = {},
): SettledCloud => ({
  ok: true,
  model: { ...model, base_url, dialect, model_kwargs: { ...model.model_kwargs, ...kwargs } },
});

/** The first dated interface that has Responses. */
const RESPONSES_SINCE = '2025-03-01';

function azure(cloud: CloudModel): SettledCloud {
  const { model, named, env, litellm } = cloud;
  const base = model.base_url ?? textOf(env.AZURE_API_BASE);
  if (base === undefined)
    return missing(cloud, 'the address of its resource', 'base_url', ['AZURE_API_BASE']);
  const version = configured(cloud, 'api_version', ['AZURE_API_VERSION']);
  if (version === undefined)
    return missing(cloud, 'a version of its interface (v1, or a date)', 'api_version', ['AZURE_API_VERSION']);
  const hasResponses = !/^\d{4}-/.test(version) || version >= RESPONSES_SINCE;
  const thinks = named.thinks && hasResponses && !litellm;
  const dialect = model.dialect ?? (thinks ? 'responses' : named.dialect);
  if (dialect === 'responses' && !hasResponses)
    return {
      ok: false,
      message: `api_version ${version} has no Responses`,
      fix: `set AZURE_API_VERSION to v1 or to ${RESPONSES_SINCE}-preview or later, or model.dialect: chat`,
    };
  const resource = stripChars(base, '/', 'right').replace(/\/openai(\/v1)?$/, '');
  return withAddress(cloud, resource, dialect, { api_version: version });
}

const REGIONS = ['AWS_REGION_NAME', 'AWS_REGION', 'AWS_DEFAULT_REGION'];

function bedrock(cloud: CloudModel): SettledCloud {
  const { model, named, env } = cloud;
  if (!/anthropic|claude|^arn:/.test(named.model))
    return {
      ok: false,
      message: `of Bedrock's models only Anthropic's are spoken to, not "${named.model}"`,
      fix: 'name one like bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0, or use Bedrock through a proxy of litellm (litellm_proxy/…)',
    };
  const region = configured(cloud, 'aws_region_name', REGIONS);
  if (region === undefined) return missing(cloud, 'a region of AWS', 'aws_region_name', REGIONS);
  const base =
    model.base_url ??
    textOf(env.AWS_BEDROCK_RUNTIME_ENDPOINT) ??
    `https://bedrock-runtime.${region}.amazonaws.com`;
  return withAddress(cloud, base, 'messages', { aws_region_name: region });
}

const PROJECTS = ['VERTEXAI_PROJECT', 'GOOGLE_CLOUD_PROJECT'];
const LOCATIONS = ['VERTEXAI_LOCATION', 'GOOGLE_CLOUD_LOCATION', 'CLOUD_ML_REGION'];

function vertex(cloud: CloudModel): SettledCloud {
  const { model, named, env } = cloud;
  const base = model.base_url ?? textOf(env.VERTEXAI_API_BASE);
  // Settled already.
  if (base !== undefined && /\/locations\/[^/]+$/.test(base)) return withAddress(cloud, base, named.dialect);
  const project = configured(cloud, 'vertex_project', PROJECTS);
  if (project === undefined) return missing(cloud, 'a project of Google Cloud', 'vertex_project', PROJECTS);
  const location = configured(cloud, 'vertex_location', LOCATIONS);
  if (location === undefined)
    return missing(cloud, 'a location of Google Cloud', 'vertex_location', LOCATIONS);
  const host =
    location === 'global'
      ? 'https://aiplatform.googleapis.com'
      : `https://${location}-aiplatform.googleapis.com`;
  const place = `projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(location)}`;
  return withAddress(cloud, `${stripChars(base ?? `${host}/v1`, '/', 'right')}/${place}`, named.dialect);
}

const ADDRESS: Readonly<Record<CloudName, (cloud: CloudModel) => SettledCloud>> = {
  azure,
  bedrock,
  vertex_ai: vertex,
};

/** Credentials of litellm's clients, which would stand in the record of the run. */
const CREDENTIALS = [
  ...['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'],
  ...['vertex_credentials', 'azure_ad_token', 'client_secret'],
];

export function settleCloud(cloud: CloudName, given: CloudModel): SettledCloud {
  const held = CREDENTIALS.find((name) => name in given.model.model_kwargs);
  if (held)
    return {
      ok: false,
      message: `model.model_kwargs.${held} is a credential`,
      fix: `take it out: credentials come from the environment (docs/models.md)`,
    };
  return ADDRESS[cloud](given);
}
