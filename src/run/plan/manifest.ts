/** The manifest of a run (run.json): everything needed to judge and repeat it, fixed at the start. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { PROMPT_TEMPLATE } from '../../agent/agentConfig.ts';
import { agentNamed } from '../../agent/agents.ts';
import { templatesOf } from '../../agent/loop/templates.ts';
import { BASH_TOOL } from '../../agent/tool.ts';
import { PACKAGE_ROOT, VERSION } from '../../base/files/packageFile.ts';
import { sha256 } from '../../base/sha256.ts';
import { headOf, readRowHash } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { DEFAULT_SEED } from '../../dataset/select.ts';
import { onEngines } from '../../environment/environments.ts';
import { type EngineInfo, engineInfo } from '../../environment/places/engineInfo.ts';
import { describeOverrides, describeRequests } from '../../model/describe.ts';
import type { RecordedShard } from '../../store/records/runs.ts';
import { broughtBy } from '../agents/armAgent.ts';
import { equipmentFacts } from '../agents/equipment.ts';
import type { Caller } from '../caller.ts';
import { contentsHere } from '../places/openImages.ts';
import { redactorOfModels } from '../secrets.ts';
import type { ArmConfig, RunRequest } from './planRecord.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

const MANIFEST_VERSION = 1;

/** The harnesses that `grading.harness` names. */
const FOLLOWS = { v5: 'SWE-bench harness 5.0', 'v4.1': 'SWE-bench harness 4.1' } as const;

const byArm = <T>({ arms }: RunRequest, of: (arm: ArmConfig) => T): Record<string, T> =>
  Object.fromEntries(arms.map((arm) => [arm.name, of(arm)]));

const eachArm = async <T>(
  { arms }: RunRequest,
  of: (arm: ArmConfig) => Promise<T>,
): Promise<Record<string, T>> =>
  Object.fromEntries(await Promise.all(arms.map(async (arm) => [arm.name, await of(arm)] as const)));

const factsOf = (engine: EngineInfo) =>
  engine.ok
    ? {
        version: engine.version,
        storage_driver: engine.storageDriver,
        cgroup: engine.cgroupVersion,
        architecture: engine.architecture,
        os: engine.os,
        cpus: engine.cpus,
        memory_bytes: engine.memoryBytes,
      }
    : null;

export async function gatherManifest(
  request: RunRequest,
  resolved: ResolvedConfig,
  {
    env,
    cwd,
    command,
    failedIn,
  }: Pick<Caller, 'env' | 'cwd' | 'command'> & { readonly failedIn: string | undefined },
): Promise<Record<string, unknown>> {
  const needsEngine = resolved.arms.some(({ environment }) => onEngines(environment));
  const secrets = redactorOfModels(
    env,
    request.arms.map((a) => a.model),
    request.suite,
  );
  const images = [
    ...new Set(
      request.arms.flatMap((a) => request.selected.map((s) => a.environment.image ?? imageOf(headOf(s)))),
    ),
  ];
  const programs = await eachArm(request, async ({ agent }) => isProgram(agent));
  const brought = Object.entries(byArm(request, ({ agent }) => broughtBy(agent, env))).filter(
    ([, what]) => what !== null,
  );
  const equipped = Object.entries(byArm(request, ({ agent }) => equipmentFacts(agent, cwd))).filter(
    ([, what]) => what !== null,
  );
  const known = await contentsHere(env, resolved.arms, images);
  const manifest = {
    manifest_version: MANIFEST_VERSION,
    run_id: request.name,
    created_at: request.createdAt,
    program: programFacts(),
    command: command ?? [],
    machine: machineFacts(),
    docker: needsEngine ? factsOf(await engineInfo()) : null,
    config_hash: request.configHash,
    ...(request.shard && { shard: shardFacts(request.shard) }),
    config_files: resolved.files,
    config_warnings: resolved.warnings,
    config: {
      run: request.run,
      grading: request.grading,
      ...(request.suite && { suite: request.suite }),
      arms: request.arms.map((arm) =>
        programs[arm.name] ? { ...arm, agent: settingsOfProgram(arm.agent) } : arm,
      ),
    },
    templates: byArm(request, ({ name, agent }) => {
      const texts = programs[name]
        ? { prompt: agent.prompt_template ?? PROMPT_TEMPLATE }
        : templatesOf(agent);
      return Object.fromEntries(
        Object.entries(texts).map(([slot, text]) => [slot, { sha256: sha256(text), text }]),
      );
    }),
    ...(brought.length > 0 && { agents: Object.fromEntries(brought) }),
    ...(equipped.length > 0 && { equipment: Object.fromEntries(equipped) }),
    models: await eachArm(request, async (arm) => ({
      ...(await describeRequests(
        arm.model,
        arm.agent.protocol === 'tool-call' ? [BASH_TOOL] : [],
        new Date(request.createdAt),
      )),
      // A program writes its own requests.
      ...(programs[arm.name] && {
        ...{ parameters: null, cache_control: null },
        overrides: await describeOverrides(arm.model),
      }),
      ...(resolved.addressFrom[arm.name] !== undefined && {
        endpoint_from: resolved.addressFrom[arm.name],
      }),
    })),
    dataset: datasetFacts(request),
    selection: selectionFacts(request, failedIn),
    images: Object.fromEntries(
      images.map((name) => {
        const here = known.get(name);
        return [name, here?.digests[0] ?? here?.id ?? null];
      }),
    ),
    patch_policy: request.run.patch,
    retry_policy: request.run.retry,
    grading: { ...request.grading, follows: FOLLOWS[request.grading.harness] },
    statistics: { paired_test: 'mcnemar-exact', interval: 'wilson-95' },
  };
  return JSON.parse(secrets.json(JSON.stringify(manifest))) as Record<string, unknown>;
}

/** A program, whose prompt alone is known: its other texts, its tools and its parameters are its own. */
const isProgram = async ({ agent_class }: ArmConfig['agent']): Promise<boolean> =>
  (await agentNamed(agent_class))?.dialect !== undefined;

/** The settings without those that only the built-in agent reads. */
const settingsOfProgram = (agent: ArmConfig['agent']) =>
  Object.fromEntries(
    Object.entries(agent).filter(
      ([key]) =>
        key === 'prompt_template' ||
        !/_template$|^(?:protocol|compat|action_regex|max_consecutive_.*)$/.test(key),
    ),
  );

function datasetFacts(request: RunRequest) {
  const ids = request.selected.map((s) => headOf(s).instance_id);
  return {
    source: request.dataset.source,
    revision: request.dataset.revision,
    file_sha256: request.dataset.fileHash,
    rows: request.dataset.count,
    count: ids.length,
    instance_ids: ids,
    ids_sha256: sha256(ids.join('\n')),
    row_hashes: Object.fromEntries(request.selected.map((s) => [headOf(s).instance_id, readRowHash(s)])),
    weights:
      request.dataset.wanted.sample === undefined
        ? null
        : Object.fromEntries(request.selected.map((s) => [headOf(s).instance_id, s.weight ?? 1])),
    strata: request.strata?.length ? request.strata : null,
    ...(request.dataset.unsupported && { unsupported: request.dataset.unsupported }),
  };
}

const shardFacts = ({ places: _, ...whole }: NonNullable<RunRequest['shard']>): RecordedShard => whole;

const selectionFacts = ({ dataset: { split, wanted } }: RunRequest, failedIn: string | undefined) => ({
  split,
  shuffle: wanted.shuffle ?? false,
  filter: wanted.filter ?? null,
  slice: wanted.slice ?? null,
  limit: wanted.limit ?? null,
  sample: wanted.sample ?? null,
  stratify: wanted.stratify ?? null,
  seed: wanted.seed ?? DEFAULT_SEED,
  failed_in: failedIn ?? null,
});

// Facts about this machine and program, which a reader needs to reproduce a result.

interface ProgramFacts {
  readonly version: string;
  readonly commit: string | null;
  readonly dirty: boolean | null;
  /** Over what differs from the commit; null where nothing does. */
  readonly diff_sha256: string | null;
}

function git(args: readonly string[]): string | null {
  try {
    return execFileSync('git', ['-C', PACKAGE_ROOT, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 256 * 2 ** 20,
    }).trim();
  } catch {
    return null;
  }
}

/** `npm run build` writes it for an installed package, which has no repository. */
const buildSchema = z.object({
  commit: z.string().nullable(),
  dirty: z.boolean().nullable(),
  diff_sha256: z.string().nullable(),
});

const NO_CHECKOUT = { commit: null, dirty: null, diff_sha256: null };

function programFacts(): ProgramFacts {
  const checkout = checkoutFacts();
  if (checkout.commit !== null) return { version: VERSION, ...checkout };
  const build = join(PACKAGE_ROOT, 'dist', 'build.json');
  const known = existsSync(build) ? buildSchema.safeParse(JSON.parse(readFileSync(build, 'utf8'))) : null;
  return {
    version: VERSION,
    ...(known?.success ? known.data : NO_CHECKOUT),
  };
}

/** Untracked files in the program's folders count as changes, because a module there is part of it. */
export function checkoutFacts(): Omit<ProgramFacts, 'version'> {
  // An installed package may lie inside another repository; only our own has package.json at its top.
  const [top, commit = null] = git(['rev-parse', '--show-toplevel', 'HEAD'])?.split('\n') ?? [];
  if (top !== PACKAGE_ROOT) return NO_CHECKOUT;
  const changed = git(['diff', 'HEAD']) ?? '';
  const unknown = git(['ls-files', '--others', '--exclude-standard', 'src', 'configs']) ?? '';
  const dirty = changed !== '' || unknown !== '';
  return {
    commit,
    dirty,
    diff_sha256: dirty ? sha256(`${changed}\n${unknown}`) : null,
  };
}

const machineFacts = () => ({
  node: process.versions.node,
  os: `${platform()} ${release()}`,
  arch: arch(),
  host: hostname(),
  cpus: cpus().length,
  memory_bytes: totalmem(),
});
