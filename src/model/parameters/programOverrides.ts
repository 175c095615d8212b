/**
 * Parameters of a configuration that go over those of a program's own requests: how hard the model thinks, how it samples, how long it answers.
 * How tools are called is the program's. Pure.
 */
import { isRecord } from '../../base/isRecord.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { LONGEST } from './parameterRule.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The overrides in the words of the provider's protocol; empty where the configuration says nothing of the kind. */
export function programOverrides(dialect: Dialect, config: ModelConfig): Fields {
  const { parallel_tool_calls: _, tool_choice: __, ...kwargs } = config.model_kwargs;
  const parameters = (model_kwargs: ModelConfig['model_kwargs']): Fields =>
    dialect.parameters({ ...config, stream: false, model_kwargs }, undefined);
  const without = parameters({});
  // Lengths follow from each other in some dialects, so only one that the configuration names counts.
  const named = LONGEST.some((name) => kwargs[name] !== undefined);
  return Object.fromEntries(
    Object.entries(parameters(kwargs)).filter(
      ([name, value]) =>
        JSON.stringify(without[name]) !== JSON.stringify(value) &&
        (named || !(LONGEST as readonly string[]).includes(name)),
    ),
  );
}

/** Objects that are taken whole: half of one and half of another would be refused. */
const WHOLE = new Set(['thinking']);

export function overridden(body: Uint8Array, overrides: Fields): Uint8Array {
  if (Object.keys(overrides).length === 0) return body;
  const asked = JSON.parse(Buffer.from(body).toString('utf8')) as Fields;
  const length = LONGEST.find((name) => name in overrides);
  const kept = Object.entries(asked).filter(
    ([name]) => length === undefined || !(LONGEST as readonly string[]).includes(name),
  );
  const merged = Object.entries(overrides).map(([name, value]) => {
    const own = asked[name];
    return [
      name,
      isRecord(value) && isRecord(own) && !WHOLE.has(name) ? { ...own, ...value } : value,
    ] as const;
  });
  return Buffer.from(JSON.stringify({ ...Object.fromEntries(kept), ...Object.fromEntries(merged) }));
}
