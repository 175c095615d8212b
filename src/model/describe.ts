/** The requests that a configuration makes: from the same code that writes the requests, for the record of a run. */

import { dialectOf } from './clouds/chooseCloud.ts';
import type { ToolSpec } from './model.ts';
import type { ModelConfig } from './modelConfig.ts';
import { namedModel } from './names.ts';
import { programOverrides } from './parameters/programOverrides.ts';
import { isFreeName, priceSource } from './prices.ts';

interface RequestDescription {
  /** The model's name in the configuration. */
  readonly asked: string | null;
  /** The model's name in requests; null where nothing is sent (scripted and replayed models, modules). */
  readonly sent_as: string | null;
  readonly endpoint: string | null;
  /** Every field of a request beside `model` and `messages`. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
  readonly cache_control: string | null;
  /** The name is one that a provider moves to other models. */
  readonly alias: boolean;
  readonly price: string | null;
}

/** Parameters that a configuration sets over those of a program's own requests; null where nothing is sent. */
export const describeOverrides = async (config: ModelConfig) =>
  sendsRequests(config) ? programOverrides(await dialectOf(config), config) : null;

/** An address without the secrets that a URL may carry. */
export function shownAddress(text: string): string {
  if (!URL.canParse(text)) return text;
  const { protocol, host, pathname } = new URL(text);
  return `${protocol}//${host}${pathname}`;
}

const sendsRequests = ({ model_name: name, model_class }: ModelConfig): boolean =>
  name !== undefined && !isFreeName(name) && model_class === 'openai';

/** The address for people; null where nothing is sent. */
export const shownEndpoint = (config: ModelConfig): string | null =>
  sendsRequests(config) ? shownAddress(namedModel(config).address ?? '') : null;

export async function describeRequests(
  config: ModelConfig,
  tools: readonly ToolSpec[],
  at: Date,
): Promise<RequestDescription> {
  const asked = config.model_name ?? null;
  const sends = sendsRequests(config);
  return {
    asked,
    sent_as: sends ? namedModel(config).sentAs : null,
    endpoint: shownEndpoint(config),
    parameters: sends ? (await dialectOf(config)).parameters(config, tools) : null,
    cache_control: sends ? config.set_cache_control : null,
    alias: asked !== null && /[-:/]latest$/i.test(asked),
    price: priceSource(config, at),
  };
}
