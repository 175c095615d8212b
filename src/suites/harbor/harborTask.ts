/** What a run and a grading need to know of a Harbor task. It is part of the instance, so that the record says what was run. */
import { z } from 'zod';
import type { Instance } from '../../dataset/instance.ts';

const network = z.enum(['none', 'public']);
const room = z.object({
  cpus: z.number().optional(),
  memory_mb: z.number().optional(),
  storage_mb: z.number().optional(),
});
export type Room = z.infer<typeof room>;

const mcpServer = z.discriminatedUnion('transport', [
  z.object({
    ...{ name: z.string(), transport: z.literal('stdio') },
    ...{ command: z.string(), args: z.array(z.string()) },
  }),
  z.object({ name: z.string(), transport: z.enum(['sse', 'streamable-http']), url: z.string() }),
]);

const artifacts = z.array(z.object({ source: z.string(), exclude: z.array(z.string()) }));
const verifier = z.object({
  timeout_s: z.number(),
  user: z.string().optional(),
  network,
  env: z.record(z.string(), z.string()),
  collect: z.array(z.object({ command: z.string(), timeout_s: z.number(), user: z.string().optional() })),
  /** Absent: it runs where the agent ran. */
  separate: z
    .object({
      image: z.string(),
      /** The image brings the tests. */
      bundled: z.boolean(),
      workdir: z.string().optional(),
      room,
      env: z.record(z.string(), z.string()),
    })
    .optional(),
});
const step = z.object({
  name: z.string(),
  instruction: z.string(),
  agent_timeout_s: z.number().optional(),
  /** One command, run before the agent begins with the step. */
  healthcheck: z.string().optional(),
  /** By the names of rewards: below one of them the steps that follow are not begun. */
  min_rewards: z.record(z.string(), z.number()).optional(),
  artifacts,
  verifier,
});
export type HarborStep = z.infer<typeof step>;

const harborTaskSchema = z.object({
  /** Absolute. Where the tests and the solution are: they are read when they are needed, and not before. */
  folder: z.string(),
  /** Hash of everything in the folder that counts. */
  files_sha256: z.string(),
  workdir: z.string().optional(),
  network,
  room,
  env: z.record(z.string(), z.string()),
  healthcheck: z.string().optional(),
  /** Absent where it has none, as in records that were made before. */
  mcp_servers: z.array(mcpServer).optional(),
  /** Images that are built from folders of the task. */
  builds: z.array(z.object({ image: z.string(), folder: z.string(), timeout_s: z.number() })).default([]),
  agent: z.object({ timeout_s: z.number().optional(), user: z.string().optional() }),
  artifacts,
  verifier,
  /** Absent for a task of one step. The verifier above is then that of no step. */
  steps: z.array(step).optional(),
  /** How the rewards of its steps become one. */
  strategy: z.enum(['mean', 'final']).optional(),
});
export type HarborTask = z.infer<typeof harborTaskSchema>;

/** Throws for an instance of another kind. */
export const harborTaskOf = ({ extra }: Instance): HarborTask => harborTaskSchema.parse(extra.harbor);
