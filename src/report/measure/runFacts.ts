/**
 * The conditions of a run as flat facts, so that two runs can be compared: what would make a difference of scores
 * mean something else than a difference of models.
 */

import { isRecord, recordOf } from '../../base/isRecord.ts';
import { lineDiff } from '../../base/text/lineDiff.ts';
import type { RunData } from '../../store/records/runData.ts';
import type { StoredArm, StoredManifest } from '../../store/records/runs.ts';

const FACT_GROUPS = [
  'dataset',
  'harness',
  'limits',
  'prompts',
  'resources',
  'model',
  'sampling',
  'agent',
  'equipment',
  'version',
  'other',
] as const;
type FactGroup = (typeof FACT_GROUPS)[number];

/** Differences of these groups are shown loudly, because they confound a comparison. A different model or agent is what is being compared. */
const LOUD: ReadonlySet<FactGroup> = new Set(['dataset', 'harness', 'limits', 'prompts', 'resources']);

/** "agent.step_limit" -> value. */
export type Facts = ReadonlyMap<string, unknown>;

export interface FactDifference {
  readonly key: string;
  readonly group: FactGroup;
  readonly loud: boolean;
  readonly a: string;
  readonly b: string;
  /** The difference of texts of several lines. */
  readonly diff: readonly string[] | null;
}

function flatten(value: unknown, path = ''): [string, unknown][] {
  if (!isRecord(value)) return [[path, value]];
  const entries = Object.entries(value);
  // An empty section says as much as a missing one.
  return entries.flatMap(([key, inner]) => flatten(inner, path ? `${path}.${key}` : key));
}

export function factsOfRun(data: RunData, arm: string): Facts {
  const { run } = data;
  const config = data.arms.find((a) => a.name === arm)?.config ?? {};
  const trials = data.trials.filter((t) => t.arm === arm);
  const seen = (xs: readonly (string | null)[]) => [...new Set(xs.filter((x) => x !== null))].sort();
  return new Map<string, unknown>([
    ['dataset.source', run.datasetSource],
    ['dataset.revision', run.datasetRevision],
    ...flatten(config),
    ...flatten(run.config.grading ?? {}, 'grading'),
    ['grading.harnesses_seen', seen(trials.map((t) => t.harness)).join(', ')],
    ['run.patch', run.config.run?.patch],
    ['swebatch.version', run.manifest.program?.version],
    ...machineOf(run.manifest),
    ['model.ids_seen', seen(data.ledger.filter((l) => l.arm === arm).map((l) => l.model)).join(', ')],
  ]);
}

const GIB = 2 ** 30;

/** The resources of the machine: timeouts and memory kills come from them as well as from a model. */
function machineOf(manifest: StoredManifest): [string, unknown][] {
  const shards = manifest.joined?.shards ?? [manifest];
  const all = shards.map(machineFacts);
  // Of a joined run each machine may have given something else.
  return all[0]!.map(([key, value], i) => {
    const values = [...new Set(all.map((facts) => facts[i]?.[1] ?? null))];
    return [key, values.length > 1 ? values.join(', ') : value];
  });
}

function machineFacts({ machine, docker: engine }: StoredManifest): [string, unknown][] {
  if (!machine) return [];
  // Containers have what the engine's machine has, which may be another one.
  const cpus = engine?.cpus ?? machine.cpus;
  const memory = engine?.memory_bytes ?? machine.memory_bytes;
  const { arch } = machine;
  return [
    ['machine.cpus', cpus],
    ['machine.arch', arch],
    // Two boots of one machine differ by some megabytes.
    ['machine.memory_gib', typeof memory === 'number' ? Math.round(memory / GIB) : null],
  ];
}

/** The agent of an arm as people call it; null for the built-in one. */
export function agentOf({ agent }: StoredArm): string | null {
  const named = agent?.program ?? agent?.agent_class;
  return typeof named === 'string' && named !== 'default' ? named : null;
}

/** An arm with its model and its agent, as far as its name does not say them. */
export function armWithAgent({
  arm,
  model,
  agent,
}: {
  arm: string;
  model: string;
  agent: string | null;
}): string {
  const about = [arm !== model && model, agent].filter(Boolean).join(', ');
  return about ? `${arm} (${about})` : arm;
}

/** The equipment of an arm's agent: comparing with and without is the question, not a difference of conditions. */
const EQUIPMENT = /^agent\.(?:skills|skills_sha256|instructions|instructions_sha256|mcp_servers)$/;
const AGENT = /^agent\.(?:agent_class|program|command)$/;
/** Keys of one agent's ways; another agent has ways of its own, and these keys say nothing about it. */
const isOfOneAgent = (key: string): boolean =>
  key.startsWith('gateway.') ||
  key.startsWith('agent.max_consecutive_') ||
  (key.startsWith('agent.') && key.endsWith('_template')) ||
  /^agent\.(?:protocol|compat|action_regex|expose_fields)$/.test(key);

function groupOf(key: string): FactGroup {
  if (EQUIPMENT.test(key)) return 'equipment';
  if (AGENT.test(key)) return 'agent';
  if (key.startsWith('dataset.')) return 'dataset';
  if (/^grading\.(harness|harnesses_seen|network|timeout|memory|parsers)/.test(key)) return 'harness';
  if (/(_limit(_seconds)?$|\.max_|\.timeout$|_timeout$|\.retry\.|^agent\.protocol|^agent\.compat)/.test(key))
    return 'limits';
  if (/(_template$|action_regex$|expose_fields|startup_command)/.test(key)) return 'prompts';
  if (/^(environment|machine)\./.test(key)) return 'resources';
  if (/^model\.(model_kwargs)/.test(key)) return 'sampling';
  if (/^model\./.test(key)) return 'model';
  if (/version/.test(key)) return 'version';
  return 'other';
}

const show = (value: unknown): string =>
  value === undefined || value === null
    ? '(none)'
    : typeof value === 'string'
      ? value
      : JSON.stringify(value);

/**
 * Facts that differ, loud ones first. With `sharedOnly` a fact that one side does not know (a file of another tool) does not count as a difference.
 */
export function factDifferences(
  a: Facts,
  b: Facts,
  { sharedOnly = false }: { readonly sharedOnly?: boolean } = {},
): FactDifference[] {
  const all = [...new Set([...a.keys(), ...b.keys()])];
  const keys = sharedOnly ? all.filter((key) => a.has(key) && b.has(key)) : all;
  const agents = ['agent.agent_class', 'agent.program'].some(
    (key) => (a.get(key) ?? null) !== (b.get(key) ?? null),
  );
  return keys
    .filter((key) => JSON.stringify(a.get(key) ?? null) !== JSON.stringify(b.get(key) ?? null))
    .map((key): FactDifference => {
      const group = agents && isOfOneAgent(key) ? 'agent' : groupOf(key);
      const [left, right] = [show(a.get(key)), show(b.get(key))];
      const long = left.includes('\n') || right.includes('\n');
      return {
        key,
        group,
        loud: LOUD.has(group),
        a: left,
        b: right,
        diff: long ? lineDiff(left, right) : null,
      };
    })
    .sort(
      (x, y) =>
        Number(y.loud) - Number(x.loud) || FACT_GROUPS.indexOf(x.group) - FACT_GROUPS.indexOf(y.group),
    );
}

/** One entry an instance or an image: said as a count, or two sets of instances would bury everything else. */
const BULKY = ['dataset.row_hashes', 'dataset.weights', 'images'];
/** Differ between any two runs, or say where a setting came from: the settings themselves are compared. */
const NAMES = new Set(['run_id', 'created_at', 'config_files', 'config_warnings', 'command']);

/** Two manifests (or any two records): every leaf that differs. For `compare --config`. */
export function recordDifferences(a: unknown, b: unknown): FactDifference[] {
  const facts = (value: unknown): Facts => {
    const leaves = flatten(value).filter(([key]) => !NAMES.has(key));
    const inside = (key: string) => BULKY.find((bulky) => key.startsWith(`${bulky}.`));
    const bulk = Map.groupBy(leaves, ([key]) => inside(key) ?? '');
    return new Map([
      ...leaves.filter(([key]) => !inside(key)),
      ...BULKY.flatMap((key): [string, unknown][] => {
        const entries = bulk.get(key);
        return entries ? [[key, JSON.stringify(entries.toSorted(([x], [y]) => (x < y ? -1 : 1)))]] : [];
      }),
    ]);
  };
  const count = (text: string) =>
    text === '(none)' ? text : `${(JSON.parse(text) as unknown[]).length} entries`;
  return factDifferences(facts(a), facts(b)).map((d) =>
    BULKY.includes(d.key) ? { ...d, a: count(d.a), b: `${count(d.b)}, not the same` } : d,
  );
}

const TEMPLATE = /_template$/;

/** The settings of a run, each once: its manifest repeats some for a reader. */
export function conditionsOf(data: RunData, arm: string): Readonly<Record<string, unknown>> {
  const { templates, models, retry_policy: _r, patch_policy: _p, ...manifest } = data.run.manifest;
  const { grading, ...config } = data.run.config;
  const own = data.arms.find((a) => a.name === arm)?.config ?? {};
  const agent = Object.entries(recordOf(own.agent)).filter(([key]) => !templates || !TEMPLATE.test(key));
  return {
    ...manifest,
    grading: manifest.grading ?? grading,
    config: { ...config, arms: undefined, arm: { ...own, agent: Object.fromEntries(agent) } },
    // Also those that a configuration leaves to the program.
    ...Object.fromEntries(
      Object.entries(recordOf(recordOf(templates)[arm])).map(([slot, t]) => [
        `${slot}_template`,
        recordOf(t).text,
      ]),
    ),
    price: recordOf(recordOf(models)[arm]).price,
  };
}
