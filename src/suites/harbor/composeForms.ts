/** The forms that the values of a Compose file have. Most have two: a short one and one with keys. */
import { z } from 'zod';
import { recordOf } from '../../base/isRecord.ts';
import type { Service } from '../../base/services.ts';
import { errorText } from '../../base/text/errorText.ts';
import { parseSize } from '../../base/text/units.ts';
import { wordsOf } from './composeText.ts';

const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const numeric = z
  .union([z.number(), z.string().regex(/^[\d.]{1,20}$/, 'must be a number')])
  .transform(Number)
  .refine((number) => Number.isFinite(number) && number >= 0, 'must be 0 or more');
const absent = z.union([z.null(), z.literal('')]).transform(() => undefined);
const optionally = <T extends z.ZodType>(schema: T) => z.union([absent, schema]).optional();
export const flag = z
  .union([z.boolean(), z.enum(['true', 'false']).transform((word) => word === 'true')])
  .default(false);
const bytes = z.union([z.number(), z.string()]).transform((size, context) => {
  try {
    return parseSize(String(size));
  } catch (error) {
    context.issues.push({ code: 'custom', input: size, message: errorText(error) });
    return z.NEVER;
  }
});

/** "1m30s", as Go reads it. */
const DURATION_PART = /([\d.]{1,20})(ms|us|ns|h|m|s)/g;
const MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, ns: 1e-6 };
const WRONG_DURATION = 'must be a duration such as 5s or 1m30s';
const duration = z
  .union([z.string().min(1, WRONG_DURATION), z.literal(0)])
  .transform((text) => {
    if (text === 0) return 0;
    const parts = [...text.matchAll(DURATION_PART)];
    const isWhole = parts.reduce((length, [part]) => length + part.length, 0) === text.length;
    return isWhole ? parts.reduce((sum, [, n, unit]) => sum + Number(n) * MS[unit!]!, 0) : Number.NaN;
  })
  .refine((ms) => Number.isFinite(ms), WRONG_DURATION);

const words = z.union([
  z.null().transform(() => undefined),
  z.array(scalar),
  z.string().transform((line, context) => {
    try {
      return wordsOf(line);
    } catch (error) {
      context.issues.push({ code: 'custom', input: line, message: errorText(error) });
      return z.NEVER;
    }
  }),
]);

/** NAME: value, or a list of NAME=value. One without a value is asked of the machine; undefined where that is refused. */
export const variablesOf = (wantedOf: (name: string) => string | undefined) =>
  z
    .union([
      z.null().transform(() => []),
      z.array(scalar).transform((lines) =>
        // One whose own text was refused is empty, and has been told.
        lines.filter(Boolean).map((line): [string, string | null] => {
          const split = line.indexOf('=');
          return split < 0 ? [line, null] : [line.slice(0, split), line.slice(split + 1)];
        }),
      ),
      z.record(z.string(), scalar.nullable()).transform((record) => Object.entries(record)),
    ])
    .transform((pairs, context) => {
      const values: Record<string, string> = {};
      for (const [name, given] of pairs) {
        const value = given ?? wantedOf(name);
        if (value !== undefined) values[name] = value;
        else
          context.issues.push({
            code: 'custom',
            input: name,
            message: `wants $${name} of this machine`,
          });
      }
      return values;
    });

const listOrNull = <T extends z.ZodType>(schema: T) =>
  z.union([z.null().transform(() => []), z.array(schema)]).default([]);
const oneOrMore = z.union([scalar.transform((one) => [one]), z.array(scalar)]);

const buildSchema = (variables: z.ZodType<Record<string, string>>) =>
  z.union([
    z.string().transform((context) => ({ context, dockerfile: 'Dockerfile', args: {}, target: undefined })),
    z
      .strictObject({
        context: z.string().default('.'),
        dockerfile: z.string().default('Dockerfile'),
        target: optionally(z.string()),
        args: variables.default({}),
        // How fast it is built, and what else its image is called.
        ...ignored([
          'cache_from',
          'cache_to',
          'no_cache',
          'pull',
          'labels',
          'tags',
          'platforms',
          'provenance',
          'sbom',
        ]),
      })
      .transform(({ context, dockerfile, target, args }) => ({ context, dockerfile, target, args })),
  ]);

export function ignored<const K extends string>(keys: readonly K[]): Record<K, z.ZodOptional<z.ZodUnknown>> {
  return Object.fromEntries(keys.map((key) => [key, z.unknown().optional()])) as never;
}

export const healthcheckSchema = z.strictObject({
  test: z.union([z.string(), z.array(scalar).min(1)]).optional(),
  interval: duration.optional(),
  timeout: duration.optional(),
  start_period: duration.optional(),
  // Newer engines alone know it, and it only makes the first checks come faster.
  start_interval: duration.optional(),
  retries: numeric.optional(),
  disable: flag,
});

type Waits = Record<
  string,
  {
    condition: 'service_started' | 'service_healthy' | 'service_completed_successfully';
    required: boolean;
  }
>;
const dependsSchema = z.union([
  z.null().transform(() => ({}) as Waits),
  z
    .array(z.string())
    .transform(
      (names): Waits =>
        Object.fromEntries(names.map((name) => [name, { condition: 'service_started', required: true }])),
    ),
  z.record(
    z.string(),
    z.strictObject({
      condition: z
        .enum(['service_started', 'service_healthy', 'service_completed_successfully'])
        .default('service_started'),
      required: z.boolean().default(true),
      restart: z.unknown().optional(),
    }),
  ),
]);

const volumeSchema = z.union([
  z.string().transform((line, context) => {
    const parts = line.split(':');
    if (parts.length > 3) {
      context.issues.push({ code: 'custom', input: line, message: `"${line}" has more than three parts` });
      return z.NEVER;
    }
    const [first = '', target, mode = ''] = parts;
    const modes = mode.split(',').filter((word) => word !== '');
    const odd = modes.find((word) => !/^(ro|rw|z|Z|cached|delegated|consistent|nocopy)$/.test(word));
    if (odd !== undefined) {
      context.issues.push({ code: 'custom', input: line, message: `"${line}" has the mode ${odd}` });
      return z.NEVER;
    }
    const read_only = modes.includes('ro');
    if (target === undefined) return { type: 'volume', source: undefined, target: first, read_only };
    return { type: /^[./~]/.test(first) ? 'bind' : 'volume', source: first, target, read_only };
  }),
  z
    .strictObject({
      type: z.enum(['volume', 'bind', 'tmpfs']),
      source: z.string().optional(),
      target: z.string(),
      read_only: flag,
      consistency: z.unknown().optional(),
      bind: z
        .strictObject({ create_host_path: z.unknown().optional(), selinux: z.unknown().optional() })
        .optional(),
      volume: z.strictObject({ nocopy: z.unknown().optional() }).optional(),
      tmpfs: z.strictObject({ size: bytes.optional(), mode: scalar.optional() }).optional(),
    })
    .transform(({ type, source, target, read_only, tmpfs }) => ({ type, source, target, read_only, tmpfs })),
]);
export interface Mount {
  readonly type: string;
  readonly source?: string | undefined;
  readonly target: string;
  readonly read_only: boolean;
  readonly tmpfs?: { readonly size?: number | undefined; readonly mode?: string | undefined } | undefined;
}

/** 8000:80, 127.0.0.1:8000-8001:80-81/udp, 80: what is before the last colon is of the machine. */
const PORTS = /^(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp|sctp))?$/;

/** Where a container says that it listens, by `ports` and `expose`. Nothing is reached by them, so one that cannot be read says nothing. */
export function declaredPorts(...lists: readonly unknown[]): NonNullable<Service['ports']> {
  const found = lists
    .flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []))
    .flatMap((one) => {
      const { target, protocol = 'tcp' } = recordOf(one);
      const line = target === undefined ? String(one) : `${String(target)}/${String(protocol)}`;
      const [, first, last = first, of = 'tcp'] = PORTS.exec(line.slice(line.lastIndexOf(':') + 1)) ?? [];
      return first === undefined ? [] : [{ first: Number(first), last: Number(last), protocol: of }];
    });
  return [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
}

type Joined = Record<string, { aliases: string[] } | null>;
const networksSchema = z.union([
  z.null().transform(() => ({}) as Joined),
  z.array(z.string()).transform((names): Joined => Object.fromEntries(names.map((name) => [name, null]))),
  z.record(
    z.string(),
    z.strictObject({ aliases: listOrNull(z.string()), ...ignored(['priority', 'gw_priority']) }).nullable(),
  ),
]);

const limit = z.union([
  numeric.transform((value) => ({ soft: value, hard: value })),
  z.strictObject({ soft: z.number().int().min(-1), hard: z.number().int().min(-1) }),
]);

const deploySchema = z.strictObject({
  resources: z
    .strictObject({
      limits: z
        .strictObject({ cpus: optionally(numeric), memory: optionally(bytes), pids: optionally(numeric) })
        .nullable()
        .optional(),
      reservations: z
        .strictObject(ignored(['cpus', 'memory', 'pids']))
        .nullable()
        .optional(),
    })
    .nullable()
    .optional(),
  replicas: z.literal(1).optional(),
  ...ignored(['restart_policy', 'labels', 'update_config', 'rollback_config', 'placement']),
});

/** Keys of the agent's container too. */
export const both = (
  variables: z.ZodType<Record<string, string>>,
  environment: z.ZodType<Record<string, string>>,
) => ({
  image: optionally(z.string()),
  build: buildSchema(variables).nullable().optional(),
  command: words.optional(),
  entrypoint: words.optional(),
  environment: environment.default({}),
  user: optionally(scalar),
  working_dir: optionally(z.string()),
  depends_on: dependsSchema.default({}),
  healthcheck: healthcheckSchema.nullable().optional(),
  volumes: listOrNull(volumeSchema),
  networks: networksSchema.optional(),
  network_mode: optionally(z.string()),
  container_name: optionally(z.string()),
  deploy: deploySchema.nullable().optional(),
  mem_limit: optionally(bytes),
  cpus: optionally(numeric),
  security_opt: listOrNull(z.string()),
  ports: z.unknown().optional(),
  expose: z.unknown().optional(),
  platform: optionally(z.string()),
  init: flag,
  tty: flag,
  stdin_open: flag,
  restart: optionally(z.union([z.literal(false), z.string()])),
  profiles: listOrNull(z.string()),
  ...ignored([
    // Nothing is reached by them, or they change nothing for what runs here.
    ...(['labels', 'annotations', 'pull_policy', 'stop_grace_period', 'stop_signal', 'logging'] as const),
    ...(['mem_reservation', 'memswap_limit', 'mem_swappiness', 'cpu_shares', 'attach', 'develop'] as const),
  ]),
});

/** Keys of services alone: in the agent's container they would change what its work and its tests rest on. */
export const beside = {
  hostname: optionally(z.string()),
  pids_limit: optionally(numeric),
  shm_size: optionally(bytes),
  tmpfs: oneOrMore.nullable().optional(),
  ulimits: z.record(z.string(), limit).nullable().optional(),
  cap_drop: listOrNull(z.string()),
  cap_add: listOrNull(z.string()),
  read_only: flag,
};
