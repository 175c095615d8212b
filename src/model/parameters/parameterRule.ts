/** Rules about parameters: the facts that they look at, and the problems that they find. */
import type { KnownModel } from '../knownModels.ts';

export interface ParameterProblem {
  /** The name in `model.model_kwargs`. */
  readonly parameter: string;
  readonly why: string;
  readonly fix: string;
  /** No server takes it, whatever is behind the address. */
  readonly always?: boolean;
  /** The value is wrong, and another one would be taken: the parameter is not left out in silence. */
  readonly value?: boolean;
  /** The rule may be out of date: worth a warning, never a refusal. */
  readonly unsure?: boolean;
}

export interface AskedParameters {
  /** Parameters that are set, without what the user vouches for (extra_body, allowed_openai_params). */
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly dialect: string;
  /** The name without a provider's prefix. */
  readonly model: string;
  readonly known: KnownModel | null;
}

export type ParameterRule = (asked: AskedParameters) => ParameterProblem[];

/** Names of the longest answer, in the order in which requests take them. */
export const LONGEST = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const;

/** A value as a message shows it, whatever it is and however long. */
export const shown = (value: unknown): string => (JSON.stringify(value) ?? 'undefined').slice(0, 60);

export const isSet = (kwargs: AskedParameters['kwargs'], name: string): boolean =>
  kwargs[name] !== undefined && kwargs[name] !== null;

/** Problems of the set ones among `names`: each is refused for the same reason. */
export const refusals = (
  { kwargs }: Pick<AskedParameters, 'kwargs'>,
  names: readonly string[],
  why: string,
  fix = 'leave it out',
): ParameterProblem[] =>
  names.filter((name) => isSet(kwargs, name)).map((parameter) => ({ parameter, why, fix }));
