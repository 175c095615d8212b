/** Whether the endpoints of a run answer, as far as that can be known without paying: `doctor` and `run --dry-run --online` ask, `run` knocks. */

import { bad, type Finding, good } from '../../base/finding.ts';
import { cloudOf } from '../../model/clouds/chooseCloud.ts';
import {
  type AskParts,
  askEndpoint,
  type EndpointAnswer,
  refusesConnections,
} from '../../model/http/askEndpoint.ts';
import { proxyFrom } from '../../model/http/proxySettings.ts';
import { ModelConfigError } from '../../model/model.ts';
import { isFreeName } from '../../model/prices.ts';
import { type Variables, variable } from '../caller.ts';
import type { ArmConfig } from './planRecord.ts';

type Arms = readonly Pick<ArmConfig, 'name' | 'model'>[];

/** A cloud answers only signed requests; a module asks whom it likes. */
const asksSomebody = ({ model }: Arms[number]): boolean =>
  model.model_class === 'openai' &&
  model.model_name !== undefined &&
  !isFreeName(model.model_name) &&
  cloudOf(model) === null;

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
  const parts: AskParts = { apiKey: read(model.api_key_env), variable: read, proxy: proxyFrom(read) };
  try {
    return await askEndpoint(model, parts);
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
