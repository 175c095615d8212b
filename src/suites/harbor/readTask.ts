/**
 * One Harbor task folder becomes an instance. A part that cannot be read or honoured becomes a reason; nothing here throws for a task (observed:
 * tests/suites/harbor/harbor.test.ts).
 */

import { existsSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { isAllowList, sameNetwork } from '../../base/allowList.ts';
import { parseReference } from '../../base/imageReference.ts';
import { type Services, servicesSchema } from '../../base/services.ts';
import { sha256 } from '../../base/sha256.ts';
import { stringOf } from '../../base/text/contentText.ts';
import { errorText } from '../../base/text/errorText.ts';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { parseSize } from '../../base/text/units.ts';
import { type Instance, instanceSchema } from '../../dataset/instance.ts';
import type { FolderTask } from '../suite.ts';
import { type TaskFile, taskFiles, taskText } from '../taskFiles.ts';
import { imageBuild, type TaskBuild } from './builds.ts';
import { COMPOSE_FILE, type Compose, type ComposeImage, MAIN_IMAGE, readCompose } from './compose.ts';
import { builtImage, type Folder, hasFile, readFolder, type StepFolder } from './taskFolder.ts';
import {
  mcpServersIn,
  networkOf,
  networkOfStep,
  readEnv,
  readTaskToml,
  type TaskToml,
  type TomlEnvironment,
  type TomlStep,
  type TomlVerifier,
  tomlRefusals,
} from './taskToml.ts';

const ENVIRONMENT = 'environment';

/** The image that is named, else the one that its folder builds. */
const imageOfFolder = (named: string | undefined, files: readonly TaskFile[]): string | undefined =>
  named ?? (hasFile(files, 'Dockerfile') ? builtImage(files) : undefined);

const HARBOR = 'harbor';

// The facts of a task for a run and a grading. The facts are part of the instance, so that the record says what was run.

const network = z.union([z.enum(['none', 'public']), z.object({ allow: z.array(z.string()).readonly() })]);
const text = z.string();
const variables = z.record(text, text);
const amount = z.number().optional();
/** Under the names that containers get them by, the names of variables of this machine; `env` beside them has their defaults. */
const wanted = variables.optional();
const room = z.object({ cpus: amount, memory_mb: amount, storage_mb: amount, gpus: amount });
type Room = z.infer<typeof room>;

const mcpServer = z.discriminatedUnion('transport', [
  z.object({ name: text, transport: z.literal('stdio'), command: text, args: z.array(text) }),
  z.object({ name: text, transport: z.enum(['sse', 'streamable-http']), url: text }),
]);

const artifacts = z.array(z.object({ source: text, exclude: z.array(text) }));
const verifier = z.object({
  timeout_s: z.number(),
  user: text.optional(),
  network,
  env: variables,
  variables: wanted,
  collect: z.array(z.object({ command: text, timeout_s: z.number(), user: text.optional() })),
  /** A container of the verifier's own; absent: it runs where the agent ran. */
  separate: z
    .object({
      image: text,
      /** The image brings the tests. */
      bundled: z.boolean(),
      workdir: text.optional(),
      room,
      env: variables,
      variables: wanted,
    })
    .optional(),
});
const step = z.object({
  name: text,
  instruction: text,
  agent_timeout_s: amount,
  /** Hosts that its agent reaches, in a task that has a list of them. */
  network: network.optional(),
  /** One command, run before the agent begins with the step. */
  healthcheck: text.optional(),
  /** The least rewards by name: below one of them the steps that follow are not begun. */
  min_rewards: z.record(text, z.number()).optional(),
  artifacts,
  verifier,
});
export type HarborStep = z.infer<typeof step>;

const harborTaskSchema = z.object({
  /** Absolute. Where the tests and the solution are: they are read when they are needed, and not before. */
  folder: text,
  /** Hash of everything in the folder that counts. */
  files_sha256: text,
  workdir: text.optional(),
  network,
  /** The network until the agent begins, where it is another, and one of both is a list of hosts. */
  setup_network: network.optional(),
  room,
  env: variables,
  variables: wanted,
  /** Variables of its solution, without a default. */
  solution_variables: wanted,
  /** A folder of its container. */
  skills_dir: text.optional(),
  healthcheck: text.optional(),
  /** Absent where it has none, as in records that were made before. */
  mcp_servers: z.array(mcpServer).optional(),
  /** Images that are built from folders of the task. */
  builds: z
    .array(
      z.object({
        image: text,
        folder: text,
        timeout_s: z.number(),
        dockerfile: text.optional(),
        target: text.optional(),
        args: variables.optional(),
        from: text.optional(),
        copies: z.array(z.object({ from: text, to: text })).optional(),
      }),
    )
    .default([]),
  /** The command that its container starts by itself, where its Compose file says so. */
  entry: z.object({ program: z.array(text).optional(), command: z.array(text).optional() }).optional(),
  /** The user of its container, by that file. */
  user: text.optional(),
  /** Containers beside it. */
  services: servicesSchema.optional(),
  agent: z.object({ timeout_s: amount, user: text.optional() }),
  artifacts,
  verifier,
  /** Absent for a task of one step. The verifier above is then that of no step. */
  steps: z.array(step).optional(),
  /** The way in which the rewards of its steps become one. */
  strategy: z.enum(['mean', 'final']).optional(),
});
export type HarborTask = z.infer<typeof harborTaskSchema>;

/** Throws for an instance of another kind. */
export const harborTaskOf = ({ extra }: Instance): HarborTask => harborTaskSchema.parse(extra.harbor);

// From the folder to the instance.

/** The address of the repository, else the organisation of the task. */
function repoOf({ metadata, task }: TaskToml): string {
  const parts = stringOf(metadata.repository_url).split('/').filter(Boolean).slice(-2);
  const address = parts.length === 2 ? parts.join('/').replace(/\.git$/, '') : undefined;
  return address ?? task?.name ?? '';
}

/** The task in words; of several steps each in its order, for people: the agent gets one at a time. */
function statementOf({ instruction = '', toml, steps }: Folder): string {
  if (steps.length === 0) return instruction;
  return steps.map((step, i) => `# Step ${i + 1}: ${toml.steps[i]!.name}\n\n${step.instruction}`).join('\n');
}

/** Files without which nothing can be asked or judged. */
function missing({ instruction, tests, steps }: Folder, task: HarborTask): string | undefined {
  if (!task.steps) {
    if (instruction === undefined) return 'it has no instruction.md';
    return task.verifier.separate?.bundled || hasFile(tests, 'test.sh')
      ? undefined
      : 'it has no tests/test.sh';
  }
  const reasons = steps.flatMap((step, i) => {
    if (step.instruction === undefined) return [`it has no ${step.path}/instruction.md`];
    if (task.steps![i]!.verifier.separate?.bundled) return [];
    if (hasFile(step.tests, 'test.sh') || hasFile(tests, 'test.sh')) return [];
    return [`it has neither ${step.path}/tests/test.sh nor tests/test.sh`];
  });
  return reasons[0];
}

function instanceOf(folder: Folder, id: string, compose: Compose | undefined): Instance | { reason: string } {
  const { toml } = folder;
  const images = imagesOf(folder, compose);
  const { main: image } = images;
  if (image === undefined) return { reason: 'it names no image and has no environment/Dockerfile' };
  const task = harborTask(folder, image, compose, images);
  const verifiers = task.steps?.map(({ verifier }) => verifier) ?? [task.verifier];
  const others = [...verifiers.map(({ separate }) => separate), ...(task.services?.containers ?? [])];
  for (const name of [image, ...others.flatMap((one) => one?.image ?? [])]) {
    const parsed = parseReference(name);
    if (!parsed.ok) return { reason: `image ${parsed.message}` };
  }
  const reason = missing(folder, task);
  if (reason !== undefined) return { reason };
  return instanceSchema.parse({
    instance_id: id,
    kind: HARBOR,
    repo: repoOf(toml),
    problem_statement: statementOf(folder),
    difficulty: stringOf(toml.metadata.difficulty),
    image,
    extra: { harbor: task, metadata: toml.metadata },
  });
}

const unread = (id: string, path: string, reason: string): FolderTask => {
  const named = instanceIdProblem(id) === null ? id : `unnamed-${sha256(id).slice(0, 12)}`;
  const instance = instanceSchema.parse({
    instance_id: named,
    kind: HARBOR,
    problem_statement: '',
    extra: { refused: reason },
  });
  return { id: named, path, instance, hash: sha256(`${id}\n${reason}`), refused: reason, warnings: [] };
};

const ofFile = (text: string): string => `environment/${COMPOSE_FILE}: ${text}`;

/** undefined where the task has no such file. */
function composeOf({
  path: task,
  environment,
  toml,
}: Folder): { compose?: Compose; refused?: readonly string[] } | undefined {
  const file = environment.find(({ path }) => path === COMPOSE_FILE);
  if (!file) return undefined;
  const read = readCompose(Buffer.from(file.content).toString('utf8'), {
    files: new Set(environment.map(({ path }) => path)),
    taskHas: (name) => existsSync(join(task, name)),
    image: toml.environment.docker_image,
    env: readEnv(toml.environment.env).env,
  });
  return read.ok ? { compose: read.compose } : { refused: read.reasons.map(ofFile) };
}

interface TaskImages {
  readonly main: string | undefined;
  /** The images of services, by name. */
  readonly services: ReadonlyMap<string, string>;
  readonly builds: readonly TaskBuild[];
}

/** The names of a task's images: named by it, or built. A name beside a build stands for the built image. */
function imagesOf({ path: task, environment, toml }: Folder, compose: Compose | undefined): TaskImages {
  const { docker_image: named, build_timeout_sec } = toml.environment;
  if (!compose) return { main: imageOfFolder(named, environment), services: new Map(), builds: [] };
  const builds: TaskBuild[] = [];
  const below = (folder: string) => {
    if (folder === ENVIRONMENT) return environment;
    if (!folder.startsWith(`${ENVIRONMENT}/`)) return taskFiles(task, folder);
    const part = folder.slice(ENVIRONMENT.length + 1);
    return environment.flatMap((file) =>
      file.path.startsWith(`${part}/`) ? [{ ...file, path: file.path.slice(part.length + 1) }] : [],
    );
  };
  const nameOf = (image: ComposeImage): string | undefined => {
    const found = imageBuild(image, build_timeout_sec, below);
    if (found.build) builds.push(found.build);
    return found.image;
  };
  const { image, build, copies } = compose.main;
  const own = image === MAIN_IMAGE ? undefined : image;
  const whole = { context: ENVIRONMENT, dockerfile: 'Dockerfile', args: {} };
  const made = build ?? (hasFile(environment, 'Dockerfile') ? whole : undefined);
  const main = nameOf(
    named !== undefined || !made ? { image: own ?? named, copies } : { build: made, copies },
  );
  const services = new Map<string, string>();
  for (const [name, service] of compose.images)
    if (service.build) services.set(name, nameOf({ ...service, image: undefined })!);
  // Other builds of the file may start from the name of this one.
  const tags = new Map(
    [...compose.images].flatMap(([name, { image: tag, build: by }]) =>
      by && tag !== undefined ? [[tag, services.get(name)!] as const] : [],
    ),
  );
  if (own !== undefined && made && main !== undefined) tags.set(own, main);
  for (const [name, service] of compose.images) {
    if (service.build || service.image === undefined) continue;
    const from = service.image === MAIN_IMAGE ? main : (tags.get(service.image) ?? service.image);
    services.set(name, nameOf({ image: from, copies: service.copies })!);
  }
  return { main, services, builds };
}

/** An engine has the GPUs that it has: Harbor's Docker environment passes over their types too. */
const typeWarnings = ({ environment, verifier }: TomlEnvironments): string[] =>
  [environment, verifier.environment].flatMap((one) =>
    one?.gpus && one.gpu_types?.length
      ? [`any GPU of the engine is taken, and not only ${one.gpu_types.join(' or ')}`]
      : [],
  );
type TomlEnvironments = Pick<TaskToml, 'environment' | 'verifier'>;

export function readTask(dir: string): FolderTask {
  const id = basename(dir);
  const problem = instanceIdProblem(id);
  if (problem) return unread(id, dir, `the name of its folder ${problem}`);
  try {
    const path = realpathSync(dir);
    const read = readTaskToml(taskText(path, 'task.toml') ?? '');
    if (!read.ok) return unread(id, path, read.reason);
    const folder = readFolder(path, read.toml);
    const { environment, tests, steps, toml, hash } = folder;
    const names = new Set([
      ...environment.map((file) => `environment/${file.path}`),
      ...tests.map((file) => `tests/${file.path}`),
      ...steps.flatMap((step) => step.tests.map((file) => `${step.path}/tests/${file.path}`)),
      ...folder.trajectories,
    ]);
    const compose = composeOf(folder);
    const [refused, ...more] = [...tomlRefusals(toml, names, compose?.compose), ...(compose?.refused ?? [])];
    const instance =
      refused === undefined
        ? instanceOf(folder, id, compose?.compose)
        : { reason: [refused, ...more].join('; ') };
    const warnings = [
      ...read.warnings,
      ...typeWarnings(toml),
      ...(compose?.compose?.notes ?? []).map(ofFile),
    ];
    if ('reason' in instance) return { ...unread(id, path, instance.reason), warnings };
    return { id, path, instance, hash, warnings };
  } catch (error) {
    return unread(id, dir, errorText(error));
  }
}

// From task.toml and the folder to what a run and a grading need: the room, the verifier of the task or of a step, the builds.

type Verifier = HarborTask['verifier'];

const megabytes = (size: string): number => Math.floor(parseSize(size) / 2 ** 20);

/** undefined for none, so that the rows of tasks that want none stay as they were. */
function withoutDefault(given: Readonly<Record<string, string>>): Record<string, string> | undefined {
  const { env, variables } = readEnv(given);
  const left = Object.entries(variables ?? {}).filter(([key]) => !Object.hasOwn(env, key));
  return left.length > 0 ? Object.fromEntries(left) : undefined;
}

function roomOf({ cpus, memory_mb, memory, storage_mb, storage, gpus }: TomlEnvironment): Room {
  const ram = memory_mb ?? (memory === undefined ? undefined : megabytes(memory));
  const disk = storage_mb ?? (storage === undefined ? undefined : megabytes(storage));
  return { cpus, memory_mb: ram, storage_mb: disk, gpus: gpus || undefined };
}

/** The verifiers of a step and of its task, the nearest first. */
type Verifiers = readonly { readonly verifier: TomlVerifier; readonly tests: readonly TaskFile[] }[];

const modeOf = ({ environment_mode, environment }: TomlVerifier) =>
  environment_mode ?? (environment ? 'separate' : undefined);

function verifierOf(folder: Folder, image: string, verifiers: Verifiers): Verifier {
  const { toml, environment } = folder;
  const from = verifiers.map(({ verifier }) => verifier);
  const isSeparate = from.map(modeOf).find((mode) => mode !== undefined) === 'separate';
  // The definition of the nearest counts; so does, on its own, the image of the nearest that has one.
  const own = (isSeparate && from.find((one) => one.environment)?.environment) || toml.environment;
  const [bundled] = verifiers.flatMap(
    ({ verifier, tests }) => imageOfFolder(verifier.environment?.docker_image, tests) ?? [],
  );
  const policy = from.find((one) => one.network_mode !== undefined);
  return {
    // Harbor's steps have a limit of their own, which is never that of the task.
    timeout_s: from[0]!.timeout_sec,
    user: from.find((one) => one.user !== undefined)?.user,
    network: networkOf(own, policy),
    ...readEnv(Object.assign({}, ...from.map(({ env }) => env).reverse()) as Record<string, string>),
    collect: from
      .toReversed()
      .flatMap(({ collect }) => collect)
      .map(({ command, timeout_sec, user }) => ({ command, timeout_s: timeout_sec, user })),
    separate: isSeparate
      ? {
          image: bundled ?? imageOfFolder(toml.environment.docker_image, environment) ?? image,
          bundled: bundled !== undefined,
          workdir: own.workdir,
          room: roomOf(own),
          ...readEnv(own.env),
        }
      : undefined,
  };
}

const artifactsOf = (list: Folder['toml']['artifacts']): HarborTask['artifacts'] =>
  list.map(({ source, exclude }) => ({ source, exclude }));

function stepOf(folder: Folder, image: string, step: TomlStep, own: StepFolder): HarborStep {
  const { toml, tests } = folder;
  const { name, healthcheck, min_reward, verifier } = step;
  return {
    name,
    instruction: own.instruction ?? '',
    agent_timeout_s: step.agent.timeout_sec ?? toml.agent.timeout_sec,
    ...([networkOf(toml.environment), ...networksOfSteps(toml)].some(isAllowList) && {
      network: networkOfStep(toml, step.agent),
    }),
    healthcheck: healthcheck && healthcheckScript(healthcheck),
    min_rewards: typeof min_reward === 'number' ? { reward: min_reward } : min_reward,
    artifacts: artifactsOf([...toml.artifacts, ...step.artifacts]),
    verifier: verifierOf(folder, image, [
      { verifier, tests: own.tests },
      { verifier: toml.verifier, tests },
    ]),
  };
}

function buildsIn(folder: Folder, images: readonly (string | undefined)[]): HarborTask['builds'] {
  const { toml, environment, tests } = folder;
  const ofTests = toml.verifier.environment ?? toml.environment;
  const possible = [
    ['environment', environment, toml.environment.build_timeout_sec] as const,
    ['tests', tests, ofTests.build_timeout_sec] as const,
    ...folder.steps.map((step, i) => {
      const own = toml.steps[i]!.verifier.environment ?? ofTests;
      return [`${step.path}/tests`, step.tests, own.build_timeout_sec] as const;
    }),
  ];
  return possible.flatMap(([name, files, timeout_s]) => {
    const image = hasFile(files, 'Dockerfile') ? builtImage(files) : undefined;
    return image !== undefined && images.includes(image) ? [{ image, folder: name, timeout_s }] : [];
  });
}

const networksOfSteps = (toml: Folder['toml']) => toml.steps.map(({ agent }) => networkOfStep(toml, agent));

/** `isOff`: the file of its containers says so. */
function networksOf(toml: Folder['toml'], isOff = false) {
  const { environment, agent } = toml;
  const own = isOff ? 'none' : networkOf(environment, agent);
  // A list of nothing is the same, and can become one of something as a step begins.
  const network = own === 'none' && networksOfSteps(toml).some(isAllowList) ? { allow: [] } : own;
  const setup = isOff ? 'none' : networkOf(environment);
  const differs = !sameNetwork(network, setup) && (isAllowList(network) || isAllowList(setup));
  return { network, setup_network: differs ? setup : undefined };
}

/** Variables of the second go over those of the same name of the first, whatever they are. */
function overOf(below: Pick<HarborTask, 'env' | 'variables'>, above: Pick<HarborTask, 'env' | 'variables'>) {
  const named = new Set([...Object.keys(above.env), ...Object.keys(above.variables ?? {})]);
  const left = <T>(record: Readonly<Record<string, T>> = {}) =>
    Object.fromEntries(Object.entries(record).filter(([key]) => !named.has(key)));
  const variables = { ...left(below.variables), ...above.variables };
  return {
    env: { ...left(below.env), ...above.env },
    ...(Object.keys(variables).length > 0 && { variables }),
  };
}

/** The task with its Compose file; task.toml goes before it. */
function composed(folder: Folder, { main, services }: Compose, { services: images }: TaskImages) {
  const { environment } = folder.toml;
  const { entrypoint: program, command } = main;
  const checks = [
    environment.healthcheck && healthcheckScript(environment.healthcheck),
    main.healthcheck && healthcheckScript({ start_interval_sec: 1, ...main.healthcheck }),
  ].filter((script) => script !== undefined);
  const room = roomOf(environment);
  const withImages: Services | undefined = services && {
    ...services,
    containers: services.containers.map((one) => ({ ...one, image: images.get(one.name)! })),
  };
  return {
    workdir: environment.workdir ?? main.cwd,
    ...networksOf(folder.toml, main.noNetwork),
    room: {
      ...room,
      cpus: room.cpus ?? main.cpus,
      memory_mb: room.memory_mb ?? (main.memoryBytes === undefined ? undefined : main.memoryBytes / 2 ** 20),
    },
    ...overOf(main, readEnv(environment.env)),
    // Each ends the shell that it runs in.
    healthcheck: checks.length > 1 ? checks.map((script) => `(\n${script}\n)`).join(' && ') : checks[0],
    ...((program !== undefined || command !== undefined) && { entry: { program, command } }),
    user: main.user,
    services: withImages,
  };
}

function harborTask(
  folder: Folder,
  image: string,
  compose: Compose | undefined,
  images: TaskImages,
): HarborTask {
  const { toml, path, hash, tests } = folder;
  const { environment, agent, artifacts, solution } = toml;
  const verifier = verifierOf(folder, image, [{ verifier: toml.verifier, tests }]);
  const steps = toml.steps.map((step, i) => stepOf(folder, image, step, folder.steps[i]!));
  const verifiers = steps.length > 0 ? steps.map((step) => step.verifier) : [verifier];
  return {
    folder: path,
    files_sha256: hash,
    workdir: environment.workdir,
    ...networksOf(toml),
    room: roomOf(environment),
    ...readEnv(environment.env),
    solution_variables: withoutDefault(solution.env),
    skills_dir: environment.skills_dir,
    healthcheck: environment.healthcheck && healthcheckScript(environment.healthcheck),
    mcp_servers: environment.mcp_servers.length > 0 ? mcpServersIn(environment.mcp_servers) : undefined,
    agent: { timeout_s: agent.timeout_sec, user: agent.user },
    builds: [
      ...buildsIn(folder, [image, ...verifiers.map(({ separate }) => separate?.image)]).filter(
        ({ image: name }) => !images.builds.some((build) => build.image === name),
      ),
      ...new Map(images.builds.map((build) => [build.image, build])).values(),
    ] as HarborTask['builds'],
    artifacts: artifactsOf(artifacts),
    verifier,
    ...(steps.length > 0 && { steps, strategy: toml.multi_step_reward_strategy ?? 'mean' }),
    ...(compose && composed(folder, compose, images)),
    ...(compose?.main.noNetwork && { verifier: { ...verifier, network: 'none' as const } }),
  };
}

/**
 * The healthcheck of a task as one command, run once after the start: it ends when the environment is ready, or fails. Failures in the start period
 * do not count, as in Docker.
 */
function healthcheckScript(check: NonNullable<TomlEnvironment['healthcheck']>): string {
  const { command, interval_sec, timeout_sec, start_period_sec, start_interval_sec, retries } = check;
  return [
    `check() { if command -v timeout >/dev/null 2>&1; then timeout ${Math.ceil(timeout_sec)} sh -c "$1"; else sh -c "$1"; fi; }`,
    `began=$(date +%s); failed=0`,
    `while :; do`,
    `  check ${shellWord(command)} && exit 0`,
    `  if [ $(($(date +%s) - began)) -lt ${Math.ceil(start_period_sec)} ]; then sleep ${start_interval_sec}; continue; fi`,
    `  failed=$((failed + 1))`,
    `  if [ $failed -ge ${retries} ]; then echo "the healthcheck of the task failed ${retries} times"; exit 1; fi`,
    `  sleep ${interval_sec}`,
    `done`,
  ].join('\n');
}
