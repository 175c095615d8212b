/**
 * Findings about what an arm works with: its model is named, its key is set, its price is known, its modules and replies can be loaded, and its
 * endpoint answers as far as that can be known without paying.
 */

import { findAgent } from '../../agent/agents.ts';
import { bad, type Finding, good } from '../../base/finding.ts';
import { configSchema } from '../../config/configSchema.ts';
import { checkEnvironmentClass, DEFAULT_ENVIRONMENT } from '../../environment/environments.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import { cloudOf, missingCredentials, missingPackages } from '../../model/clouds/chooseCloud.ts';
import { askEndpoint, type EndpointAnswer, refusesConnections } from '../../model/http/askEndpoint.ts';
import { proxyFrom } from '../../model/http/proxySettings.ts';
import { ModelConfigError } from '../../model/model.ts';
import type { ModelConfig } from '../../model/modelConfig.ts';
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
import { type Variables, variable } from '../caller.ts';
import { redactorOfModels } from '../secrets.ts';
import type { PlanFacts } from './planFacts.ts';

const missing = (what: string, detail: string, fix: string): Finding => ({
  ...bad(what, detail, fix),
  here: true,
});

type Arm = PlanFacts['arms'][number];

export async function agentFindings(arm: Arm, { env, cwd }: PlanFacts): Promise<Finding[]> {
  const what = `agent of arm ${arm.name}`;
  const problem = await agentProblem(arm, env);
  const found = await findAgent(arm.agent.agent_class, cwd);
  return [
    ...(problem ? [missing(what, problem.message, problem.fix)] : []),
    ...(found.success
      ? []
      : [bad(what, found.message, 'correct it, or leave it out for the built-in agent')]),
  ];
}

export const environmentClassFindings = ({ name, environment }: Arm): Promise<Finding[]> =>
  checkEnvironmentClass(environment.environment_class).then(
    () => [],
    (error: Error) => [
      bad(
        `environment of arm ${name}`,
        error.message,
        `correct it, or leave it out for ${DEFAULT_ENVIRONMENT}`,
      ),
    ],
  );

/** The model's key, price, references of parameters, and client, which is made once, as a run makes it. A model is checked as far as it is known. */
export async function modelFindings(
  { name, agent, model }: Pick<Arm, 'name' | 'agent' | 'model'>,
  { env, run }: Pick<PlanFacts, 'env' | 'run'>,
): Promise<Finding[]> {
  const what = `model of arm ${name}`;
  if (model.model_class === 'openai' && !model.model_name)
    return [
      bad(what, 'no model is named', 'name one with -m MODEL, or model.model_name in the configuration'),
    ];
  const settled = settleModel(model, { env, litellm: agent.compat !== null });
  if (!settled.ok) return [bad(what, settled.message, settled.fix)];
  const references = referenceFindings({ name, model }, env);
  const scripted = model.model_name?.startsWith('scripted:') ?? false;
  let free = false;
  // A recording is opened with the store, and the client of an endpoint below.
  if (scripted || (model.model_class !== 'openai' && !isFreeName(model.model_name)))
    try {
      const factory = await createModelFactory(model);
      await factory.close();
      free = factory.free;
    } catch (error) {
      const { message } = error as Error;
      const problem = scripted
        ? missing(what, message, 'correct the path')
        : bad(what, message, 'correct model.model_class');
      return [...references, problem];
    }
  const limited = agent.cost_limit > 0 || run.cost_limit > 0;
  const findings = [...(await costFindings({ name, model }, { limited, free, env })), ...references];
  if (findings.some(({ ok }) => !ok)) return findings;
  return [...findings, ...(await clientFindings(what, settled.model, env))];
}

export const variableFindings = ({ suite, env }: PlanFacts): Finding[] =>
  (suite?.env ?? [])
    .filter((name) => env[name] === undefined)
    .map((name) => missing('suite.env', `$${name} is not set`, `export ${name}=..., or leave it out`));

/** A judge is checked as the model of an arm, and has a provider behind it. */
export async function judgeFindings({ suite, ...facts }: PlanFacts): Promise<Finding[]> {
  const judge = suite?.judge;
  if (!judge) return [];
  const what = 'model of suite.judge';
  const cloud = namedModel(judge).provider?.cloud;
  if (judge.model_class !== 'openai' || isFreeName(judge.model_name))
    return [bad(what, 'tests ask a provider, and there is none behind it', 'name a model of a provider')];
  if (cloud !== undefined)
    return [
      bad(
        what,
        `requests of tests do not carry the credentials of ${cloud}`,
        "name the maker's own address, or a gateway in front of the cloud (litellm_proxy/NAME)",
      ),
    ];
  const { agent } = configSchema.parse({});
  return (await modelFindings({ name: 'suite.judge', agent, model: judge }, facts)).filter(({ ok }) => !ok);
}

export async function parserFindings({ grading, cwd }: PlanFacts): Promise<Finding[]> {
  const { enabled, parsers } = grading;
  if (!enabled && Object.keys(parsers).length === 0) return [];
  return loadParsers(parsers, cwd).then(
    () => [],
    (error: Error) => [bad('grading', error.message, 'correct grading.parsers')],
  );
}

/** Parameters that refer to a variable need it, also when a run goes on from its record. */
function referenceFindings({ name, model }: ArmModel, env: Variables): Finding[] {
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

/** The client refuses its options before anything is recorded. */
async function clientFindings(what: string, model: ModelConfig, env: Variables): Promise<Finding[]> {
  if (model.model_class !== 'openai' || isFreeName(model.model_name)) return [];
  const apiKey = variable(env, model.api_key_env);
  try {
    await (await createModelFactory(model, { apiKey, variable: (name) => variable(env, name) })).close();
    return [];
  } catch (error) {
    if (!(error instanceof ModelConfigError)) throw error;
    return [bad(what, error.message, 'correct the model section')];
  }
}

/** No secret may enter a container, even if it stands in the configuration. */
export function secretFindings(
  { name, model, environment }: Pick<Arm, 'name' | 'model' | 'environment'>,
  { env }: Pick<PlanFacts, 'env'>,
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

/** A price is needed only with a limit. */
async function costFindings(
  { name, model }: Pick<Arm, 'name' | 'model'>,
  { limited, free, env }: { readonly limited: boolean; readonly free: boolean; readonly env: Variables },
): Promise<Finding[]> {
  if (isFreeName(model.model_name))
    return [good(`model of arm ${name}`, `${model.model_name} needs no key and costs nothing`)];
  const what = `price of arm ${name}`;
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
async function keyFinding({ name, model }: ArmModel, env: Variables): Promise<Finding> {
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

/** A prompt that nobody wrote is none of the ones that were measured. An agent of the user's says itself what it needs. */
export async function promptFindings(
  { name, agent }: Pick<Arm, 'name' | 'agent'>,
  { unwritten: all, replacedBy = null, cwd }: Pick<PlanFacts, 'unwritten' | 'replacedBy' | 'cwd'>,
): Promise<Finding[]> {
  const unwritten = all?.[name] ?? [];
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

type ArmModel = Pick<Arm, 'name' | 'model'>;

/** A cloud answers only signed requests; a module asks whom it likes. */
const asksSomebody = ({ model }: ArmModel): boolean =>
  model.model_class === 'openai' &&
  model.model_name !== undefined &&
  !isFreeName(model.model_name) &&
  namedModel(model).provider?.cloud === undefined;

/** An address that the configuration or a variable names. */
const atOwnAddress = ({ model }: ArmModel): boolean =>
  model.base_url !== undefined && URL.canParse(model.base_url);

/** Asks for the list of models. `online`: also the makers' own addresses. */
export const answerFindings = ({
  arms,
  env,
  online = false,
}: Pick<PlanFacts, 'env' | 'online'> & { readonly arms: readonly ArmModel[] }): Promise<Finding[]> =>
  Promise.all(
    arms
      .filter((arm) => asksSomebody(arm) && (online || atOwnAddress(arm)))
      .map(async (arm) => {
        const what = `endpoint of arm ${arm.name}`;
        const answer = await answerOf(arm, env);
        return answer.ok ? good(what, answer.detail) : bad(what, answer.detail, answer.fix);
      }),
  );

async function answerOf({ model }: ArmModel, env: Variables): Promise<EndpointAnswer> {
  const read = (name: string) => variable(env, name);
  try {
    return await askEndpoint(model, read, proxyFrom(read));
  } catch (error) {
    if (!(error instanceof ModelConfigError)) throw error;
    return { ok: false, detail: error.message, fix: 'correct the model section' };
  }
}

/** A run does not spend minutes on retries where nobody listens. Behind a proxy only the proxy could tell. */
export async function deadEndpointFindings({ arms, env }: PlanFacts): Promise<Finding[]> {
  if (proxyFrom((name) => variable(env, name))) return [];
  const asked = arms.filter((arm) => asksSomebody(arm) && atOwnAddress(arm));
  const found = await Promise.all(
    [...new Map(asked.map(({ name, model }) => [model.base_url!, name]))].map(async ([url, name]) =>
      (await refusesConnections(url))
        ? bad(
            `endpoint of arm ${name}`,
            `nobody listens at ${new URL(url).host} (connection refused)`,
            'start the server, or correct model.base_url (or the variable that names the address)',
          )
        : [],
    ),
  );
  return found.flat();
}
