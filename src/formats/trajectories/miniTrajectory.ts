/** A trajectory file of mini-swe-agent, formats 1 and 1.1, or of swebatch, which writes the same. Unknown keys stay. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { cutNesting, stepsOrNull } from '../../base/plausible.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import { type Body, type Read, readForeign } from '../foreignJson.ts';

export type TrajectoryFormat = 'mini-swe-agent-1' | 'mini-swe-agent-1.1';

const record = z.record(z.string(), z.unknown());

/** Items of the Responses API have no role. */
const messageSchema = z.looseObject({
  role: z.string().optional(),
  content: z.unknown().optional(),
  timestamp: z.number().optional(),
  extra: record.optional(),
});
export type TrajectoryMessage = z.infer<typeof messageSchema>;

export interface MiniTrajectory {
  /** Null where the file does not say it, as for a single run outside a batch. */
  readonly instanceId: string | null;
  readonly format: TrajectoryFormat;
  /** Of mini-swe-agent. */
  readonly version: string | null;
  readonly exitStatus: string | null;
  readonly submission: string | null;
  readonly exception: string | null;
  readonly costDollars: number | null;
  readonly apiCalls: number | null;
  /** agent, model and environment, as version 1 and 2 record them. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly messages: readonly TrajectoryMessage[];
}

/** Nothing in it is nested deeper than the record can hold. */
const trajectorySchema = z
  .looseObject({
    info: z.looseObject({
      model_stats: z
        .looseObject({ instance_cost: z.number().nullish(), api_calls: z.number().nullish() })
        .nullish(),
      config: record.default({}),
      mini_version: z.string().nullish(),
      exit_status: z.string().nullish(),
      submission: z.string().nullish(),
      exception_str: z.string().nullish(),
    }),
    messages: z.array(messageSchema),
    // Versions before 1.4 did not name it.
    trajectory_format: z.enum(['mini-swe-agent-1', 'mini-swe-agent-1.1']).default('mini-swe-agent-1'),
    instance_id: instanceIdSchema.nullish(),
  })
  .transform(
    ({ info, messages, trajectory_format, instance_id }): MiniTrajectory => ({
      instanceId: instance_id ?? null,
      format: trajectory_format,
      version: info.mini_version ?? null,
      exitStatus: info.exit_status ?? null,
      submission: info.submission ?? null,
      exception: info.exception_str ?? null,
      costDollars: info.model_stats?.instance_cost ?? null,
      apiCalls: stepsOrNull(info.model_stats?.api_calls),
      config: info.config,
      messages,
    }),
  );

export const readTrajectory = (text: Body): Read<MiniTrajectory> =>
  readForeign(
    text,
    trajectorySchema,
    (value) => isRecord(value) && 'info' in value && 'messages' in value,
    'it has no info and messages',
  );

/** Of JSON that was read already; throws ZodError. */
export const parseTrajectory = (json: unknown): MiniTrajectory =>
  trajectorySchema.parse(cutNesting(json).value);
