/**
 * Checks whether an arm can work: a model is named, its key is set, its price is known, its modules and replies can be loaded,
 * its endpoint answers as far as that can be known without paying.
 * `run` and `resume` refuse before anything is made or paid; `doctor` shows every result.
 */

import { findAgent } from '../../agent/agents.ts';
import { bad, type Finding, good } from '../../base/finding.ts';
import { configSchema } from '../../config/configSchema.ts';
import type { SuiteConfig } from '../../config/suiteConfig.ts';
import { checkEnvironmentClass, DEFAULT_ENVIRONMENT } from '../../environment/environments.ts';
import { cloudOf, missingCredentials, missingPackages } from '../../model/clouds/chooseCloud.ts';
import { askEndpoint, type EndpointAnswer, refusesConnections } from '../../model/http/askEndpoint.ts';
import { proxyFrom } from '../../model/http/proxySettings.ts';
import { ModelConfigError } from '../../model/model.ts';
import { createModelFactory } from '../../model/modelFactory.ts';
import {
  CONFIGURED,
  referencesIn,
  referencesInAddress,
  replacedCredential,
} from '../../model/namedCredentials.ts';
import { namedModel } from '../../model/names.ts';
import { didYouMean, isFreeName, NO_PRICE_FIX, priceKnown } from '../../model/prices.ts';
import { settleModel } from '../../model/settleModel.ts';
import { agentProblem } from '../agents/armAgent.ts';
import { type Caller, type Variables, variable } from '../caller.ts';
import { redactorOfModels } from '../secrets.ts';
import type { ArmConfig } from './planRecord.ts';

const missing = (what: string, detail: string, fix: string): Finding => ({
  ...bad(what, detail, fix),
  here: true,
});

/** `runLimit` is in dollars, 0 for none. A price is needed only with a limit. */
export async function checkArm(
  arm: ArmConfig,
  runLimit: number,
  { env, cwd }: Pick<Caller, 'env' | 'cwd'>,
): Promise<Finding[]> {
  const { name, model } = arm;
  if (model.model_class === 'openai' && !model.model_name)
    return [
      bad(
        `model of arm ${name}`,
        'no model is named',
        'name one with -m MODEL, or model.model_name in the configuration',
      ),
    ];
  const settled = settleModel(model, { env, litellm: arm.agent.compat !== null });
  if (!settled.ok) return [bad(`model of arm ${name}`, settled.message, settled.fix)];
  const { free, problems } = await loadParts(arm, { env, cwd });
  const findings = free === null ? [] : await modelFindings(arm, runLimit, free, env);
  findings.push(...referenceFindings({ name, model }, env));
  const client = findings.some(({ ok }) => !ok)
    ? []
    : await clientFindings({ name, model: settled.model }, env);
  return [...findings, ...client, ...problems, ...secretFindings(arm, env)];
}

/** As the model of an arm, and one that a provider is behind. */
export async function suiteFindings(
  suite: SuiteConfig | undefined,
  runLimit: number,
  around: Pick<Caller, 'env' | 'cwd'>,
): Promise<Finding[]> {
  const unset = (suite?.env ?? []).filter((name) => around.env[name] === undefined);
  const lacks = unset.map((name) =>
    missing('suite.env', `$${name} is not set`, `export ${name}=..., or leave it out`),
  );
  const judge = suite?.judge;
  if (!judge) return lacks;
  const what = 'model of suite.judge';
  const cloud = namedModel(judge).provider?.cloud;
  if (judge.model_class !== 'openai' || isFreeName(judge.model_name))
    return [
      ...lacks,
      bad(what, 'tests ask a provider, and there is none behind it', 'name a model of a provider'),
    ];
  if (cloud !== undefined)
    return [
      ...lacks,
      bad(
        what,
        `requests of tests do not carry the credentials of ${cloud}`,
        "name the maker's own address, or a gateway in front of the cloud (litellm_proxy/NAME)",
      ),
    ];
  const { agent, environment } = configSchema.parse({});
  const arm = { name: 'suite.judge', agent, environment, model: judge };
  return [...lacks, ...(await checkArm(arm, runLimit, around)).filter(({ ok }) => !ok)];
}

/** Parameters that refer to a variable need it, also when a run goes on from its record. */
function referenceFindings({ name, model }: Pick<ArmConfig, 'name' | 'model'>, env: Variables): Finding[] {
  const what = `parameters of arm ${name}`;
  const replaced = replacedCredential(model.model_kwargs);
  const again = 'write env:NAME there, with the name of the variable that holds it';
  if (replaced !== null)
    return [bad(what, `model.model_kwargs.${replaced} holds the mark of a secret that was taken out`, again)];
  const inAddress = referencesInAddress(model.base_url).map((one) => ({
    ...one,
    path: `base_url (${one.path})`,
  }));
  const inKwargs = referencesIn(model.model_kwargs).map((one) => ({
    ...one,
    path: `model_kwargs.${one.path}`,
  }));
  return [...inAddress, ...inKwargs].flatMap(({ path, name: wanted }) => {
    if (variable(env, wanted) !== undefined) return [];
    const fix = wanted.startsWith(CONFIGURED)
      ? `its value stood in the configuration and is not recorded: export ${wanted}=..., or give it again (run --run-id with the same -c); env:NAME in the configuration spares this`
      : `export ${wanted}=...`;
    return [missing(what, `model.${path} is in $${wanted}, which is not set`, fix)];
  });
}

/** What asks the endpoint is made once, as a run makes it: what it refuses is refused before anything is recorded. */
async function clientFindings(
  { name, model }: Pick<ArmConfig, 'name' | 'model'>,
  env: Variables,
): Promise<Finding[]> {
  if (model.model_class !== 'openai' || isFreeName(model.model_name)) return [];
  const apiKey = variable(env, model.api_key_env);
  try {
    await (await createModelFactory(model, { apiKey, variable: (name) => variable(env, name) })).close();
    return [];
  } catch (error) {
    if (!(error instanceof ModelConfigError)) throw error;
    return [bad(`model of arm ${name}`, error.message, 'correct the model section')];
  }
}

/** No secret may enter a container, even if it stands in the configuration. */
export function secretFindings(
  { name, model, environment }: Pick<ArmConfig, 'name' | 'model' | 'environment'>,
  env: Variables,
): Finding[] {
  const secrets = redactorOfModels(env, [model]);
  const given: Record<string, string> = { startup_command: environment.startup_command ?? '' };
  for (const [key, value] of Object.entries(environment.env)) given[`env.${key}`] = value;
  return Object.entries(given).flatMap(([key, value]) => {
    if (!secrets.contains(value)) return [];
    const secret = /‹redacted:(.*?)›/.exec(secrets.text(value))?.[1] ?? 'a secret';
    return [
      bad(
        `environment of arm ${name}`,
        `environment.${key} holds the value of $${secret}, which commands of the agent would see`,
        `remove it, or unset ${secret} if it is not a secret`,
      ),
    ];
  });
}

async function modelFindings(
  { name, agent, model }: ArmConfig,
  runLimit: number,
  free: boolean,
  env: Variables,
): Promise<Finding[]> {
  if (isFreeName(model.model_name))
    return [good(`model of arm ${name}`, `${model.model_name} needs no key and costs nothing`)];
  const what = `price of arm ${name}`;
  const limited = agent.cost_limit > 0 || runLimit > 0;
  const price =
    free || priceKnown(model)
      ? good(what, 'known')
      : limited && model.cost_tracking === 'default'
        ? bad(
            what,
            `no price for "${model.model_name ?? model.model_class}"${didYouMean(model)}`,
            NO_PRICE_FIX,
          )
        : good(what, `unknown; no limit needs it, but the cost will not be known${didYouMean(model)}`);
  // A custom module handles its own key.
  return model.model_class === 'openai' ? [await keyFinding({ name, model }, env), price] : [price];
}

/** A local server often needs no key; a provider's own address always does. */
async function keyFinding(
  { name, model }: Pick<ArmConfig, 'name' | 'model'>,
  env: Variables,
): Promise<Finding> {
  const what = `key of arm ${name}`;
  const cloud = await cloudOf(model);
  if (cloud?.prepare || variable(env, model.api_key_env) === undefined) {
    const problem = await missingPackages(model);
    if (problem) return missing(what, problem.message, problem.fix);
  }
  if (variable(env, model.api_key_env) !== undefined) return good(what, `$${model.api_key_env} is set`);
  if (cloud) {
    const problem = await missingCredentials(model);
    return problem
      ? missing(what, problem.message, problem.fix)
      : good(what, `${cloud.name} is asked with credentials of its own`);
  }
  if (model.base_url) return good(what, `not set; ${model.base_url} may not need one`);
  return missing(
    what,
    `$${model.api_key_env} is not set${namedModel(model).provider ? '' : didYouMean(model)}`,
    `export ${model.api_key_env}=..., or name another variable in model.api_key_env`,
  );
}

/** Loads the modules that the arm names, and closes them again. `free` is what a custom model says; null when it cannot be loaded. */
async function loadParts(arm: ArmConfig, { env, cwd }: Pick<Caller, 'env' | 'cwd'>) {
  const { name, agent, environment, model } = arm;
  const problems: Finding[] = [];
  const tell = (what: string, message: string, fix: string, here = false) =>
    void problems.push({ ...bad(`${what} of arm ${name}`, message, fix), ...(here && { here }) });
  const found = await findAgent(agent.agent_class, cwd);
  const problem = await agentProblem(arm, env);
  if (problem) tell('agent', problem.message, problem.fix, true);
  if (!found.success) tell('agent', found.message, 'correct it, or leave it out for the built-in agent');
  await checkEnvironmentClass(environment.environment_class).catch((error: Error) =>
    tell('environment', error.message, `correct it, or leave it out for ${DEFAULT_ENVIRONMENT}`),
  );
  // A recording is opened with the store, and the client of an endpoint on first use.
  const scripted = model.model_name?.startsWith('scripted:') ?? false;
  if (!scripted && (model.model_class === 'openai' || isFreeName(model.model_name)))
    return { free: false, problems };
  try {
    const factory = await createModelFactory(model);
    await factory.close();
    return { free: factory.free, problems };
  } catch (error) {
    tell(
      'model',
      (error as Error).message,
      scripted ? 'correct the path' : 'correct model.model_class',
      scripted,
    );
    return { free: null, problems };
  }
}

/** A prompt that nobody wrote is none of the ones that were measured. An agent of the user's says itself what it needs. */
export async function templateFindings(
  { name, agent }: Pick<ArmConfig, 'name' | 'agent'>,
  unwritten: readonly string[],
  replacedBy: string | null,
  cwd: string,
): Promise<Finding[]> {
  if (unwritten.length === 0) return [];
  const found = await findAgent(agent.agent_class, cwd);
  if (!found.success || !found.result.prompted) return [];
  const keys = unwritten.map((key) => `agent.${key}`).join(' and ');
  const why =
    replacedBy === null
      ? 'and no default lies under it'
      : `and ${replacedBy} replaces the default configuration, because it brings a prompt or agent.compat of its own`;
  return [
    bad(
      `prompt of arm ${name}`,
      `nothing names ${keys}, ${why}`,
      `name ${keys} there too, or give the other keys without templates and compat, so that they are laid over the default`,
    ),
  ];
}

type Arms = readonly Pick<ArmConfig, 'name' | 'model'>[];

/** A cloud answers only signed requests; a module asks whom it likes. */
const asksSomebody = ({ model }: Arms[number]): boolean =>
  model.model_class === 'openai' &&
  model.model_name !== undefined &&
  !isFreeName(model.model_name) &&
  namedModel(model).provider?.cloud === undefined;

/** An address that the configuration or a variable names. */
const atOwnAddress = ({ model }: Arms[number]): boolean =>
  model.base_url !== undefined && URL.canParse(model.base_url);

/** `all`: the makers' own addresses too. */
export async function endpointFindings(arms: Arms, env: Variables, all: boolean): Promise<Finding[]> {
  const asked = arms.filter((arm) => asksSomebody(arm) && (all || atOwnAddress(arm)));
  return Promise.all(
    asked.map(async (arm) => {
      const what = `endpoint of arm ${arm.name}`;
      const answer = await answerOf(arm, env);
      return answer.ok ? good(what, answer.detail) : bad(what, answer.detail, answer.fix);
    }),
  );
}

async function answerOf({ model }: Arms[number], env: Variables): Promise<EndpointAnswer> {
  const read = (name: string) => variable(env, name);
  try {
    return await askEndpoint(model, read, proxyFrom(read));
  } catch (error) {
    if (!(error instanceof ModelConfigError)) throw error;
    return { ok: false, detail: error.message, fix: 'correct the model section' };
  }
}

/** A run does not spend minutes on retries where nobody listens. Behind a proxy only the proxy could tell. */
export async function deadEndpoints(arms: Arms, env: Variables): Promise<string[]> {
  if (proxyFrom((name) => variable(env, name))) return [];
  const urls = new Map(
    arms
      .filter((arm) => asksSomebody(arm) && atOwnAddress(arm))
      .map((arm) => [arm.model.base_url!, arm.name]),
  );
  const found = await Promise.all(
    [...urls].map(async ([url, name]) =>
      (await refusesConnections(url))
        ? [
            `endpoint of arm ${name}: nobody listens at ${new URL(url).host} (connection refused); start the server, or correct model.base_url (or the variable that names the address)`,
          ]
        : [],
    ),
  );
  return found.flat();
}
