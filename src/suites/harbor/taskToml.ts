/** task.toml of a Harbor task, schema 1.4 and older: every key that the format has. Keys that it does not have are told and left out. */
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { errorText, issueText } from '../../base/text/errorText.ts';

/** Newest schema whose keys are read here. */
const SCHEMA = 1.4;

// Names of steps are names of folders, also on file systems that know no case: the rules are Harbor's.
const INVALID = /[<>:"/\\|?*\u0000-\u001f\u007f]/;
const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])$/i;
const MOST_BYTES = 255;

const isStepName = (name: string): boolean =>
  name.trim() !== '' &&
  !/[. ]$/.test(name) &&
  !INVALID.test(name) &&
  !DEVICE.test(name.split('.')[0]!.trimEnd()) &&
  Buffer.byteLength(name) <= MOST_BYTES;

/** Two names with one key are one folder somewhere. */
const stepKey = (name: string): string => name.normalize('NFC').toLowerCase();

const name = z.string().min(1);
const count = z.number().min(0);
const user = z.union([z.string(), z.number().int()]).transform(String);
const variables = z.record(z.string(), z.string());
const policy = {
  network_mode: z.enum(['no-network', 'public', 'allowlist']).optional(),
  allowed_hosts: z.array(z.string()).optional(),
};
const healthcheckSchema = z.strictObject({
  command: name,
  interval_sec: count.default(5),
  timeout_sec: count.default(30),
  start_period_sec: count.default(0),
  start_interval_sec: count.default(5),
  retries: z.number().int().min(1).default(3),
});
/** The names are parts of the names of tools, which programs and providers keep to these characters. */
const mcpServerSchema = z.strictObject({
  name: z.string().regex(/^[\w-]+$/, 'must be letters, digits, "_" and "-"'),
  transport: z
    .enum(['stdio', 'sse', 'streamable-http', 'http'])
    .default('sse')
    .transform((transport) => (transport === 'http' ? 'streamable-http' : transport)),
  url: z.string().optional(),
  command: z.string().optional(),
  args: z.array(z.string()).default([]),
  headers: variables.default({}),
});
const environmentSchema = z.strictObject({
  ...policy,
  build_timeout_sec: count.default(600),
  docker_image: name.optional(),
  os: z.string().toLowerCase().default('linux'),
  cpus: count.optional(),
  memory_mb: count.optional(),
  storage_mb: count.optional(),
  memory: z.string().optional(),
  storage: z.string().optional(),
  gpus: count.optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.unknown().optional(),
  mcp_servers: z.array(mcpServerSchema).default([]),
  env: variables.default({}),
  skills_dir: z.string().optional(),
  healthcheck: healthcheckSchema.optional(),
  workdir: name.optional(),
  allow_internet: z.boolean().optional(),
});
const agentSchema = z.strictObject({ ...policy, timeout_sec: count.optional(), user: user.optional() });
const collectSchema = z.strictObject({
  command: name,
  service: z.string().default('main'),
  timeout_sec: count.default(60),
  user: user.optional(),
});
const verifierSchema = z.strictObject({
  ...policy,
  timeout_sec: count.default(600),
  env: variables.default({}),
  user: user.optional(),
  environment_mode: z.enum(['shared', 'separate']).optional(),
  environment: environmentSchema.optional(),
  collect: z.array(collectSchema).default([]),
});
/** A path alone is short for a table with it. Not a union: that would hide which key of the table is not known. */
const artifactSchema = z.preprocess(
  (value) => (typeof value === 'string' ? { source: value } : value),
  z.strictObject({
    source: name,
    destination: z.string().optional(),
    exclude: z.array(z.string()).default([]),
    service: z.string().default('main'),
  }),
);
const artifactsSchema = z.array(artifactSchema).default([]);
const stepSchema = z.strictObject({
  name: z.string().refine(isStepName, 'is no name of a folder'),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  /** Below it the steps that follow are not begun; a number is that of "reward". */
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: healthcheckSchema.optional(),
  artifacts: artifactsSchema,
});
const tomlSchema = z.strictObject({
  schema_version: z.string().default(String(SCHEMA)),
  version: z.string().optional(),
  task: z
    .strictObject({
      name: z.string().optional(),
      version: z.string().optional(),
      description: z.string().default(''),
      authors: z.array(z.unknown()).default([]),
      keywords: z.array(z.string()).default([]),
    })
    .optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  verifier: verifierSchema.prefault({}),
  agent: agentSchema.prefault({}),
  environment: environmentSchema.prefault({}),
  solution: z.strictObject({ env: variables.default({}) }).prefault({}),
  source: z.string().optional(),
  multi_step_reward_strategy: z.enum(['mean', 'final']).optional(),
  steps: z
    .array(stepSchema)
    .refine(
      (steps) => new Set(steps.map(({ name }) => stepKey(name))).size === steps.length,
      'have one name twice',
    )
    .default([]),
  artifacts: artifactsSchema,
});
export type TaskToml = z.infer<typeof tomlSchema>;
export type TomlStep = z.infer<typeof stepSchema>;
export type TomlVerifier = z.infer<typeof verifierSchema>;
export type TomlEnvironment = z.infer<typeof environmentSchema>;
export type TomlMcpServer = z.infer<typeof mcpServerSchema>;

export type ReadToml =
  | { readonly ok: true; readonly toml: TaskToml; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly reason: string };

type Tree = Record<string, unknown>;

/** Takes the key of a path out of a tree; true when it was there. */
function removeKey(tree: unknown, path: readonly PropertyKey[], key: string): boolean {
  let place = tree as Tree | undefined;
  for (const part of path) place = place?.[String(part)] as Tree | undefined;
  return place !== undefined && Reflect.deleteProperty(place, key);
}

export function readTaskToml(text: string): ReadToml {
  let tree: unknown;
  try {
    tree = parse(text);
  } catch (error) {
    // The library draws the place over several lines; the first says what is wrong.
    const where = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : '';
    return { ok: false, reason: `task.toml cannot be read: ${errorText(error).split('\n')[0]}${where}` };
  }
  const warnings: string[] = [];
  let read = tomlSchema.safeParse(tree);
  for (const issue of read.error?.issues ?? [])
    if (issue.code === 'unrecognized_keys')
      for (const key of issue.keys)
        if (removeKey(tree, issue.path, key))
          warnings.push(`task.toml has a key that is not known here: ${[...issue.path, key].join('.')}`);
  if (warnings.length > 0) read = tomlSchema.safeParse(tree);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { ok: false, reason: `task.toml: ${issue!.path.join('.') || 'the file'}: ${issueText(issue!)}` };
  }
  const { version, schema_version } = read.data;
  const stated = Number(version ?? schema_version);
  if (stated > SCHEMA) warnings.push(`task.toml says schema ${stated}; this program knows up to ${SCHEMA}`);
  return { ok: true, toml: read.data, warnings };
}
