/** A model of the user's: its answers and its rows for the ledger are checked before they are used. */
import { z } from 'zod';
import { lacks, madeBy, misused, type NamedModule, problemWith, watchedModule } from '../userModule.ts';
import type { CallListener, Model, QueryOptions } from './model.ts';

const text = z.string().nullable();
const count = z.int().min(0);
const usageSchema = z
  .object({ input: count, cacheRead: count, cacheWrite: count, output: count, reasoning: count })
  .nullable();

const answerSchema = z.discriminatedUnion('success', [
  z.looseObject({
    success: z.literal(true),
    result: z.looseObject({
      message: z.looseObject({ role: z.string() }),
      content: z.string(),
      toolCalls: z.array(
        z.looseObject({
          id: z.string(),
          function: z.looseObject({ name: z.string(), arguments: z.string() }),
        }),
      ),
      finishReason: text,
      modelId: text,
      usage: usageSchema,
      costNano: count.nullable(),
    }),
  }),
  z.looseObject({ success: z.literal(false), error: z.string(), message: z.string() }),
]);

/** Facts for the ledger before a call. */
export const callBeganSchema = z.looseObject({
  try: count,
  modelAsked: z.string(),
  startedAt: z.number(),
  estimateNano: count.nullable(),
});

/** Facts for the ledger after a call. */
export const callEndedSchema = z.looseObject({
  try: count,
  state: z.enum(['ok', 'failed', 'aborted']),
  startedAt: z.number(),
  latencyMs: z.number(),
  statusCode: z.int().nullable(),
  errorCode: text,
  errorMessage: text,
  modelAsked: z.string(),
  modelAnswered: text,
  responseId: text,
  fingerprint: text,
  finishReason: text,
  usage: usageSchema,
  priceVersion: text,
  costNano: count.nullable(),
  providerCostNano: z.number().nullable(),
  requestBytes: count,
  notes: z.array(z.string()),
});

const FUNCTIONS = ['query', 'templateVars'];

export function userModel(module: NamedModule, create: () => Model): Model {
  const model = madeBy(module, 'createModel', create, (made) => {
    if (lacks(made, FUNCTIONS) !== null)
      return `a model is an object with the functions ${FUNCTIONS.join(' and ')}`;
    return typeof (made as Model).name === 'string' ? null : 'a model has a name';
  });
  return watchedModule(
    module,
    model,
    {
      query: (answer) => problemWith(answerSchema, answer),
      templateVars: (vars) => problemWith(z.looseObject({}), vars),
    },
    (name, args) =>
      name === 'query' ? [args[0], checkedLedger(module, args[1] as QueryOptions | undefined)] : args,
  );
}

function checkedLedger(module: NamedModule, options: QueryOptions | undefined): QueryOptions | undefined {
  const listener = options?.listener;
  if (!listener) return options;
  const refuseWrong = (name: string, schema: z.ZodType, row: unknown): void => {
    const problem = problemWith(schema, row);
    if (problem !== null)
      throw misused(module, `told listener.${name} of a call that no ledger takes: ${problem}`);
  };
  const checked: CallListener = {
    ...listener,
    began(call) {
      refuseWrong('began', callBeganSchema, call);
      return listener.began(call);
    },
    ended(call) {
      refuseWrong('ended', callEndedSchema, call);
      listener.ended(call);
    },
  };
  return { ...options, listener: checked };
}
