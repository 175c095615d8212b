/** The configuration of a run as a file that starts the same run again: sections, arms, and the rows it had. Pure. */
import { stringify } from 'yaml';
import { recordedAgentConfig } from '../agent/replay/recording.ts';
import { nameOf } from '../config/arms.ts';
import type { RunRow } from '../store/runs.ts';
import type { ArmConfig } from './plan.ts';

interface StoredConfig {
  readonly arms?: readonly ArmConfig[];
  readonly dataset?: Readonly<Record<string, unknown>>;
  readonly [section: string]: unknown;
}

export type ExportedRun = Pick<
  RunRow,
  'config' | 'dataset_source' | 'dataset_hash' | 'imported' | 'manifest'
>;

/** What `run -c -` reads: sections for one arm, `arms:` where there are several or a name of its own. */
export function exportConfig(run: ExportedRun, ids: readonly string[]): string {
  const stored = JSON.parse(run.config) as StoredConfig;
  if (run.imported === 1) return write({ ...publishedSections(run, stored), dataset: rowsOf(run, ids) });
  const { arms = [], dataset, ...sections } = stored;
  const rows = {
    subset: run.dataset_source,
    ...dataset,
    ...(dataset ? { rows_sha256: run.dataset_hash } : {}),
  };
  // The name that a replay predicts under comes from its recording again.
  const plain = arms.map(({ predictsAs: _, ...arm }) => arm);
  const [only] = plain;
  if (plain.length === 1 && only && only.name === nameOf(only.model)) {
    const { name: _, ...parts } = only;
    return write({ ...parts, ...sections, dataset: rows });
  }
  return write({ ...sections, arms: plain, dataset: rows });
}

const rowsOf = (run: ExportedRun, ids: readonly string[]) => ({
  subset: run.dataset_source,
  instances: ids,
});

const IN_AGENT = /_template$|^action_regex$/;

/**
 * What a mini-swe-agent trajectory says about its run, for running it again: its agent under `agent.compat`, as `replay` plays it. The image
 * is the one instance's that it was read from.
 */
function publishedSections(run: ExportedRun, stored: StoredConfig): Record<string, unknown> {
  const config = (stored.arms?.[0] ?? {}) as unknown as Readonly<Record<string, Record<string, unknown>>>;
  const { format, program } = JSON.parse(run.manifest) as {
    format?: string;
    program?: { mini_swe_agent?: string | null };
  };
  if (!config.agent) return {};
  const { image: _, ...environment } = config.environment ?? {};
  const model = Object.entries(config.model ?? {}).filter(([key]) => !IN_AGENT.test(key));
  return {
    agent: recordedAgentConfig(
      config,
      program?.mini_swe_agent ?? '',
      format === 'mini-swe-agent-1.1' ? format : 'mini-swe-agent-1',
    ),
    environment,
    model: Object.fromEntries(model),
  };
}

const write = (value: unknown): string => stringify(value, { lineWidth: 0 });
