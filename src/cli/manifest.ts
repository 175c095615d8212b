/** The manifest of a run (run.json): everything that is needed to judge and repeat it, locked at start. */

import { imageOf } from '../dataset/instance.ts';
import { DEFAULT_SEED } from '../dataset/select.ts';
import { engineInfo, imagesHere } from '../environment/engineInfo.ts';
import { sha256 } from '../runner/patch.ts';
import type { RunRequest } from '../runner/plan.ts';
import type { ResolvedConfig } from './configOptions.ts';
import { machineFacts, programFacts } from './facts.ts';
import type { RunArgs } from './runArgs.ts';

export const MANIFEST_VERSION = 1;

export async function gatherManifest(
  request: RunRequest,
  resolved: ResolvedConfig,
  args: RunArgs,
): Promise<Record<string, unknown>> {
  const usesDocker = resolved.arms.some((a) => a.environment.environment_class === 'docker');
  const engine = usesDocker ? await engineInfo() : null;
  const images = request.selected.map((s) => imageOf(s.instance));
  const known = engine?.ok
    ? await imagesHere(images)
    : new Map<string, { id: string; digest: string | null }>();
  const { wanted } = request.dataset;
  const ids = request.selected.map((s) => s.instance.instance_id);
  return {
    manifest_version: MANIFEST_VERSION,
    run_id: request.name,
    created_at: request.createdAt,
    program: programFacts(),
    machine: machineFacts(),
    docker: engine?.ok
      ? {
          version: engine.version,
          storage_driver: engine.storageDriver,
          cgroup: engine.cgroupVersion,
          architecture: engine.architecture,
          os: engine.os,
        }
      : null,
    config_hash: request.configHash,
    config_files: resolved.files,
    config: { run: request.run, grading: request.grading, arms: request.arms },
    dataset: {
      source: request.dataset.source,
      revision: request.dataset.revision,
      file_sha256: request.dataset.fileHash,
      count: ids.length,
      instance_ids: ids,
      ids_sha256: sha256(ids.join('\n')),
      row_hashes: Object.fromEntries(request.selected.map((s) => [s.instance.instance_id, s.rowHash])),
      weights:
        wanted.sample === undefined
          ? null
          : Object.fromEntries(request.selected.map((s) => [s.instance.instance_id, s.weight])),
    },
    selection: {
      split: request.dataset.split,
      shuffle: wanted.shuffle ?? false,
      filter: wanted.filter ?? null,
      slice: wanted.slice ?? null,
      limit: wanted.limit ?? null,
      sample: wanted.sample ?? null,
      stratify: wanted.stratify ?? null,
      seed: wanted.seed ?? DEFAULT_SEED,
      failed_in: args.failedIn ?? null,
    },
    images: Object.fromEntries(
      images.map((name) => [name, known.get(name)?.digest ?? known.get(name)?.id ?? null]),
    ),
    patch_policy: request.run.patch,
    retry_policy: request.run.retry,
    grading: {
      dialect: request.grading.dialect,
      network: request.grading.network,
      enabled: request.grading.enabled,
    },
    statistics: { paired_test: 'mcnemar-exact', interval: 'wilson-95' },
  };
}
