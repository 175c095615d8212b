/** Containers that a task has beside the one that its work is done in: of one attempt alone, on networks of their own. As plain data. */
import { z } from 'zod';

const text = z.string();
const amount = z.number().optional();

/** The ports it says it listens on: of use where containers share an address. */
const ports = z.array(z.object({ first: z.number(), last: z.number(), protocol: text })).optional();

/** The place of a container among the others. Names are those of the task; each attempt has networks and volumes of its own. */
const place = {
  networks: z.array(z.object({ name: text, aliases: z.array(text) })),
  volumes: z.array(z.object({ name: text, path: text, readOnly: z.boolean() })),
};

const healthcheck = z.object({
  /** The test as the engine takes it: CMD or CMD-SHELL and what follows, or NONE. */
  test: z.array(text),
  intervalMs: amount,
  timeoutMs: amount,
  startPeriodMs: amount,
  retries: amount,
});

const service = z.object({
  name: text,
  image: text,
  ...place,
  ports,
  /** Absent: those of the image. */
  entrypoint: z.array(text).optional(),
  command: z.array(text).optional(),
  env: z.record(text, text),
  /** Variables of this machine, which go over `env` where they are given: under which name, to the name here. */
  variables: z.record(text, text).optional(),
  user: text.optional(),
  cwd: text.optional(),
  hostname: text.optional(),
  healthcheck: healthcheck.optional(),
  /** The state of another service that it waits for. `done`: that one has ended, and well. */
  after: z.array(z.object({ service: text, until: z.enum(['started', 'healthy', 'done']) })),
  memoryBytes: amount,
  cpus: amount,
  pids: amount,
  shmBytes: amount,
  tmpfs: z.array(z.object({ path: text, options: text })),
  ulimits: z.array(z.object({ name: text, soft: z.number(), hard: z.number() })),
  restart: z.enum(['no', 'always', 'on-failure', 'unless-stopped']),
  capDrop: z.array(text),
  capAdd: z.array(text),
  init: z.boolean(),
  tty: z.boolean(),
  stdin: z.boolean(),
  readOnly: z.boolean(),
});

export const servicesSchema = z.object({
  /** `inner`: nothing outside is reached by it, whatever the task's network is. */
  networks: z.array(z.object({ name: text, inner: z.boolean() })),
  /** The container of the work: what others call it, and what it has of them. */
  own: z.object({ name: text, ...place, ports }),
  /** The containers in an order in which they can be started: each after those that it waits for. */
  containers: z.array(service),
});

export type Services = z.infer<typeof servicesSchema>;
export type Service = z.infer<typeof service>;
