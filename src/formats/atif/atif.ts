/**
 * Trajectories in ATIF (1.0 to 1.8) as a run: one file, or a folder of `<id>.atif.json` as swebatch exports them. The format states neither patch
 * nor verdict, and not how the attempt ended, so all of these are unknown.
 */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { contentText } from '../../base/text/contentText.ts';
import { plausibleNano } from '../../money.ts';
import { readerOf, readIfThere } from '../foreignFile.ts';
import {
  type ForeignFormat,
  type ForeignRun,
  foreignInstance,
  numbered,
  type RecordedCall,
  recordedCall,
  secondsOf,
  spanOf,
  tokensOfPrompt,
  UNKNOWN_MODEL,
  withIds,
} from '../foreignFormat.ts';
import { withReport } from '../verdicts.ts';

export const atif: ForeignFormat = {
  recognise({ files, head }) {
    const found = files ? files.some((file) => file.endsWith('.atif.json')) : head('').includes('"ATIF-v');
    return found
      ? { words: 'trajectories in ATIF', certain: 'likely', ...(!files && { reads: 'itself' }) }
      : null;
  },
  read: (source, report) => withReport(readAtifFiles(source), report),
};

const count = z.number().nullish();
const content = z.union([z.string(), z.array(z.looseObject({ text: z.string().nullish() }))]).nullish();
const stepSchema = z.looseObject({
  step_id: z.number().int(),
  timestamp: z.string().nullish(),
  source: z.enum(['system', 'user', 'agent']),
  message: content,
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(z.looseObject({ tool_call_id: z.string(), function_name: z.string(), arguments: z.unknown() }))
    .nullish(),
  observation: z
    .looseObject({ results: z.array(z.looseObject({ source_call_id: z.string().nullish(), content })) })
    .nullish(),
  model_name: z.string().nullish(),
  metrics: z
    .looseObject({
      prompt_tokens: count,
      completion_tokens: count,
      cached_tokens: count,
      cost_usd: count,
      extra: z.looseObject({ cache_write_tokens: count, reasoning_tokens: count }).nullish(),
    })
    .nullish(),
});
const atifSchema = z.looseObject({
  schema_version: z.string(),
  agent: z
    .looseObject({ name: z.string(), version: z.string().nullish(), model_name: z.string().nullish() })
    .nullish(),
  steps: z.array(stepSchema),
  final_metrics: z.looseObject({ total_cost_usd: count }).nullish(),
});
type Step = z.infer<typeof stepSchema>;

const ROLES = { system: 'system', user: 'user', agent: 'assistant' } as const;

function messagesOf(step: Step): Readonly<Record<string, unknown>>[] {
  const calls = (step.tool_calls ?? []).map((call) => ({
    id: call.tool_call_id,
    type: 'function',
    function: { name: call.function_name, arguments: JSON.stringify(call.arguments ?? {}) },
  }));
  const said = {
    role: ROLES[step.source],
    content: contentText(step.message),
    ...(step.reasoning_content && { reasoning_content: step.reasoning_content }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const seen = (step.observation?.results ?? []).map(({ source_call_id, content: output }) => ({
    ...(source_call_id ? { role: 'tool', tool_call_id: source_call_id } : { role: 'user' }),
    content: contentText(output),
  }));
  return [said, ...seen];
}

const callOf = ({ metrics, model_name, timestamp }: Step, step: number): RecordedCall[] =>
  metrics
    ? [
        recordedCall({
          ...tokensOfPrompt({
            prompt: metrics.prompt_tokens,
            cached: metrics.cached_tokens,
            written: metrics.extra?.cache_write_tokens,
            completion: metrics.completion_tokens,
            reasoning: metrics.extra?.reasoning_tokens,
          }),
          step,
          model: model_name ?? null,
          rawUsage: metrics,
          costNano: plausibleNano(metrics.cost_usd),
          at: secondsOf(timestamp),
        }),
      ]
    : [];

/** The cost of the whole beyond its steps: of sub-agents, and of files whose steps state no cost. */
function restCall(calls: readonly RecordedCall[], totalNano: number | null, step: number): RecordedCall[] {
  if (totalNano === null || calls.some(({ costNano }) => costNano === null)) return [];
  const rest = totalNano - calls.reduce((sum, { costNano }) => sum + costNano!, 0);
  // Sums of dollars differ in their last digits.
  if (calls.length > 0 && rest < 1000) return [];
  return [
    recordedCall({ step, costNano: rest, notes: ['cost of the whole beyond its steps, from final_metrics'] }),
  ];
}

export const readAtif = readerOf(
  atifSchema.transform(({ steps, agent, final_metrics }) => {
    const byAgent = steps.filter(({ source }) => source === 'agent');
    return {
      steps: byAgent.length,
      messages: steps.flatMap(messagesOf),
      agent: agent ? { name: agent.name, version: agent.version ?? null } : null,
      model: agent?.model_name ?? byAgent.find(({ model_name }) => model_name)?.model_name ?? null,
      calls: byAgent.flatMap((step, at) => callOf(step, at + 1)),
      /** The cost of the whole, as the file states it; null where it does not. */
      totalNano: plausibleNano(final_metrics?.total_cost_usd),
      ...spanOf(steps.flatMap(({ timestamp }) => secondsOf(timestamp) ?? [])),
    };
  }),
  (value) =>
    isRecord(value) && typeof value.schema_version === 'string' && value.schema_version.startsWith('ATIF'),
  'it states no schema_version of ATIF',
);

/** Harbor keeps them as `<trial>/agent/trajectory.json`. */
function idOf(path: string): string {
  const name = basename(path).replace(/(?:\.atif)?\.json$/, '');
  if (name !== 'trajectory') return name;
  const folder = dirname(resolve(path));
  return basename(basename(folder) === 'agent' ? dirname(folder) : folder);
}

const filesIn = (source: string): string[] =>
  !statSync(source).isDirectory()
    ? [source]
    : readdirSync(source, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.atif.json') && !/\.attempt-\d+\.atif\.json$/.test(file))
        .sort()
        .map((file) => join(source, file));

/** The files of a source: of several files of one instance each is an epoch, in the order of their paths. */
function readAtifFiles(source: string): ForeignRun {
  const problems: string[] = [];
  const found = filesIn(source).flatMap((path) => {
    const read = readIfThere(path, readAtif, problems);
    return read ? [{ ...read, path, instanceId: idOf(path) }] : [];
  });
  const instances = numbered(withIds(found, problems)).map(
    ({ path, instanceId, epoch, agent, model, calls, totalNano, ...stated }) => {
      const costs = calls.map(({ costNano }) => costNano);
      const known = costs.length > 0 && costs.every((cost) => cost !== null);
      return foreignInstance({
        ...stated,
        instanceId,
        epoch,
        model: model ?? agent?.name ?? UNKNOWN_MODEL,
        format: 'atif',
        version: agent?.version ?? null,
        // The file's own total goes first: steps of sub-agents and failed calls are in no step of it.
        costNano: totalNano ?? (known ? costs.reduce((sum, cost) => sum + cost, 0) : null),
        calls: [...calls, ...restCall(calls, totalNano, stated.steps)],
        file: path,
        notes: ['ATIF does not say how the attempt ended'],
      });
    },
  );
  const warnings = ['ATIF states neither patch nor verdict: both are unknown'];
  return { folder: source, instances, verdicts: new Map(), warnings, problems };
}
