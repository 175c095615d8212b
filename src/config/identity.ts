/**
 * Which settings make a run what it is. `identity`: another value is another experiment, refused at resume and named by compare.
 * `runtime`: how fast and where it runs. Which rows a run takes is in neither hash nor refusal by key, because one selection has many
 * spellings: runs are held against each other by the hashes of the rows themselves. A test sees that every key is in exactly one of the two.
 */
import { createHash } from 'node:crypto';
import { at, isTree } from './merge.ts';
import { allPaths, type Config } from './schema.ts';

export type FieldClass = 'identity' | 'runtime';

const IDENTITY = [
  'agent.agent_class',
  'agent.protocol',
  'agent.compat',
  'agent.system_template',
  'agent.instance_template',
  'agent.observation_template',
  'agent.format_error_template',
  'agent.timeout_template',
  'agent.action_regex',
  'agent.step_limit',
  'agent.cost_limit',
  'agent.token_limit',
  'agent.wall_time_limit_seconds',
  'agent.max_consecutive_format_errors',
  'agent.max_consecutive_empty_replies',
  'agent.max_consecutive_timeouts',
  'agent.expose_fields',
  'environment.environment_class',
  'environment.image',
  'environment.cwd',
  'environment.env',
  'environment.timeout',
  'environment.interpreter',
  'environment.network',
  'environment.memory',
  'environment.pids_limit',
  'environment.cpus',
  'environment.disk',
  'environment.user',
  'environment.platform',
  'environment.max_output_bytes',
  'environment.max_command_bytes',
  'environment.max_patch_bytes',
  'environment.seal_history',
  'environment.allow_leaky',
  'environment.startup_command',
  'model.model_name',
  'model.model_class',
  'model.base_url',
  'model.dialect',
  'model.model_kwargs',
  'model.prices',
  'model.cost_tracking',
  'model.set_cache_control',
  'run.epochs',
  'run.patch',
  'grading.dialect',
  'grading.network',
  'grading.timeout',
  'grading.memory',
  'grading.cap_add',
  'grading.parsers',
  'arms',
] as const;

const RUNTIME = [
  'environment.hosts',
  'environment.pull',
  'environment.pull_timeout',
  'environment.start_timeout',
  'environment.container_timeout',
  'environment.capture_timeout',
  'environment.supervisor',
  'environment.probe',
  'model.api_key_env',
  'model.retry.enabled',
  'model.retry.max_retries',
  'model.retry.base_delay_ms',
  'model.retry.max_delay_ms',
  'model.retry.enable_jitter',
  'model.retry.max_retry_after_s',
  'model.connect_timeout_s',
  'model.first_byte_timeout_s',
  'model.idle_timeout_s',
  'model.total_timeout_s',
  'model.stream',
  'model.max_concurrent',
  'model.latency_ms',
  'run.workers',
  'run.cost_limit',
  'run.emit_empty',
  'run.on_interrupt',
  'run.order',
  'run.retry.attempts',
  'run.retry.backoff_s',
  'run.retry.reasons',
  'run.stall.start_s',
  'run.stall.seal_s',
  'run.stall.setup_s',
  'run.stall.model_s',
  'run.stall.rate_wait_s',
  'run.stall.backoff_s',
  'run.stall.exec_s',
  'run.stall.capture_s',
  'run.stall.stop_s',
  'run.disk_floor',
  'run.breaker.consecutive',
  'run.breaker.fraction',
  'run.breaker.window',
  'run.breaker.empty_patches',
  'run.breaker.probe_after_s',
  'run.breaker.max_probes',
  'run.stop_grace_s',
  'run.heartbeat_s',
  'run.suspicion_rules',
  'run.env_startup_command',
  'run.on_finish',
  'run.on_budget',
  'run.on_breaker',
  'grading.enabled',
  'grading.workers',
  'images.max_concurrent_pulls',
  'images.ahead',
  'images.pulls_per_window',
  'images.window_seconds',
  'images.attempts',
  'images.retry_seconds',
  'images.rate_limit_patience_seconds',
  'images.mirrors',
  'images.rewrite',
  'images.insecure_registries',
  'images.allow_emulation',
  'images.policy',
  'images.disk_low',
  'images.disk_high',
  'dataset.subset',
  'dataset.split',
  'dataset.revision',
  'dataset.instances',
  'dataset.shuffle',
  'dataset.filter',
  'dataset.slice',
  'dataset.limit',
  'dataset.sample',
  'dataset.stratify',
  'dataset.seed',
  'dataset.rows_sha256',
] as const;

export const FIELD_CLASSES: Readonly<Record<string, FieldClass>> = Object.fromEntries([
  ...IDENTITY.map((path) => [path, 'identity'] as const),
  ...RUNTIME.map((path) => [path, 'runtime'] as const),
]);

/** Keys of the schema that the table does not class, and the other way round; both must be empty. */
export function unclassed(): { missing: string[]; stale: string[] } {
  const paths = allPaths();
  return {
    missing: paths.filter((path) => !Object.hasOwn(FIELD_CLASSES, path)),
    stale: Object.keys(FIELD_CLASSES).filter((path) => !paths.includes(path)),
  };
}

/** Hash over the identity fields, independent of the order of keys. */
export function configHash(config: Config): string {
  const identity = IDENTITY.map((path) => [path, at(config, path.split('.')) ?? null]);
  return createHash('sha256').update(canonical(identity)).digest('hex');
}

/** JSON with sorted keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isTree(value)) return JSON.stringify(value) ?? 'null';
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join(',')}}`;
}

export interface FieldDifference {
  readonly path: string;
  readonly class: FieldClass;
  readonly before: unknown;
  readonly after: unknown;
}

/** What differs between two configurations, for resume and compare. */
export function configDifferences(before: Config, after: Config): FieldDifference[] {
  return Object.entries(FIELD_CLASSES).flatMap(([path, fieldClass]) => {
    const [a, b] = [at(before, path.split('.')), at(after, path.split('.'))];
    return canonical(a ?? null) === canonical(b ?? null)
      ? []
      : [{ path, class: fieldClass, before: a, after: b }];
  });
}
