/** An agent of the user's: its objects, results and reports to the record are checked, so that nothing else of a run breaks by them. */
import { z } from 'zod';
import { callBeganSchema, callEndedSchema } from '../model/userModel.ts';
import {
  described,
  lacks,
  madeBy,
  misused,
  type NamedModule,
  problemWith,
  watchedModule,
} from '../userModule.ts';
import type { AgentCallbacks, CreateAgent } from './contract.ts';

const resultSchema = z.object({
  exitStatus: z.string().min(1),
  submission: z.string(),
  submissionBytes: z.instanceof(Uint8Array).optional(),
  limit: z.string().optional(),
  error: z.looseObject({ code: z.string(), message: z.string() }).optional(),
  messages: z.array(z.unknown()),
  steps: z.int().min(0),
  costNano: z.number().nullable(),
});

const messageSchema = z.looseObject({
  role: z.string().min(1),
  content: z.union([z.string(), z.null(), z.array(z.unknown())]).optional(),
});

const commandSchema = z.object({
  step: z.int(),
  index: z.int(),
  command: z.string(),
  startedAt: z.number(),
  result: z.looseObject({
    output: z.string(),
    raw: z.instanceof(Uint8Array),
    exitCode: z.int().nullable(),
    timedOut: z.boolean(),
    totalBytes: z.int(),
    omittedBytes: z.int(),
    replacedBytes: z.int(),
    durationMs: z.number(),
    oomKilled: z.boolean(),
    transport: z.string(),
  }),
});

export const userAgent =
  (module: NamedModule, create: CreateAgent): CreateAgent =>
  (parts) => {
    const callbacks = parts.callbacks && checkedRecord(module, parts.callbacks);
    const make = () => create({ ...parts, ...(callbacks && { callbacks }) });
    const agent = madeBy(module, 'createAgent', make, (made) =>
      lacks(made, ['run']) === null ? null : 'an agent is an object with a function run',
    );
    return watchedModule(module, agent, { run: (result) => problemWith(resultSchema, result) });
  };

/** Reports to the record must have its forms and its order: a message that came twice, or after a gap, would take another's place. */
function checkedRecord(module: NamedModule, record: AgentCallbacks): AgentCallbacks {
  let messages = 0;
  const refuseWrong = (name: string, schema: z.ZodType, value: unknown): void => {
    const problem = problemWith(schema, value);
    if (problem !== null) throw misused(module, `told ${name} ${described(value)}: ${problem}`);
  };
  const { onMessage, onCommand, onCallBegan, onCallEnded } = record;
  return {
    ...record,
    ...(onMessage && {
      onMessage(ctx, message, index) {
        refuseWrong('onMessage', messageSchema, message);
        if (index !== messages)
          throw misused(
            module,
            `told message ${index}, and message ${messages} comes next: all are recorded, in order`,
          );
        onMessage.call(record, ctx, message, index);
        messages += 1;
      },
    }),
    ...(onCommand && {
      onCommand(ctx, command) {
        refuseWrong('onCommand', commandSchema, command);
        onCommand.call(record, ctx, command);
      },
    }),
    ...(onCallBegan && {
      onCallBegan(ctx, call) {
        refuseWrong('onCallBegan', callBeganSchema, call);
        return onCallBegan.call(record, ctx, call);
      },
    }),
    ...(onCallEnded && {
      onCallEnded(ctx, call) {
        refuseWrong('onCallEnded', callEndedSchema, call);
        onCallEnded.call(record, ctx, call);
      },
    }),
  };
}
