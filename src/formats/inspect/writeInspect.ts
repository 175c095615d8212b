/** A run as logs of Inspect (version 2 of the format, .eval): one for each arm, as `inspect log` and its viewer read them. */

import { crc32, deflateRawSync } from 'node:zlib';
import { recordOf } from '../../base/isRecord.ts';
import { sha256 } from '../../base/sha256.ts';
import { contentText } from '../../base/text/contentText.ts';
import { pathName } from '../../base/text/fileName.ts';
import type { ExitReason } from '../../outcome.ts';
import {
  RECORD_IN_LOG,
  sumOfUsage,
  type WrittenArm,
  type WrittenFile,
  type WrittenRun,
  type WrittenTrial,
  type WrittenUsage,
} from '../writtenRun.ts';

type Json = Record<string, unknown>;

const SCORER = 'swe_bench_scorer';
const TASK = 'swe_bench';

export function* writeInspect(run: WrittenRun): Generator<WrittenFile> {
  for (const arm of run.arms) {
    const when = run.createdAt.replace(/\.\d+Z$/, '+00:00').replaceAll(':', '-');
    const name = run.arms.length === 1 ? run.name : `${run.name}_${arm.name}`;
    yield { path: `${when}_${TASK}_${pathName(name)}.eval`, content: zipOf(parts(run, arm)) };
  }
}

function* parts(run: WrittenRun, arm: WrittenArm) {
  const summaries: Json[] = [];
  const used: (readonly [string, WrittenUsage])[] = [];
  for (const trial of arm.trials()) {
    const { instanceId, epoch } = trial.attempt;
    const sample = sampleOf(run, arm, trial);
    used.push(...trial.usage);
    summaries.push(summaryOf(sample));
    yield {
      name: `samples/${instanceId}_epoch_${epoch}.json`,
      text: JSON.stringify(sample),
    };
  }
  const head = headerOf(run, arm, summaries, modelUsage(used));
  yield {
    name: '_journal/start.json',
    text: JSON.stringify({ version: 2, eval: head.eval, plan: head.plan }),
  };
  yield { name: RECORD_IN_LOG, text: run.record(arm.name) };
  yield { name: 'summaries.json', text: JSON.stringify(summaries) };
  yield { name: 'header.json', text: JSON.stringify(head) };
}

/** 22 characters, as Inspect makes them; the same run has the same. */
const idOf = (...of: readonly string[]): string => sha256(of.join('\n')).slice(0, 22);

const date = (at: string): string => at.replace(/Z$/, '+00:00');

function headerOf(run: WrittenRun, arm: WrittenArm, summaries: readonly Json[], usage: Json) {
  const scored = summaries.filter(({ scores }) => Object.keys(recordOf(scores)).length > 0);
  const ends = run.finishedAt ?? run.createdAt;
  const total = run.ids.length * run.epochs;
  return {
    version: 2,
    status: summaries.length === total ? 'success' : 'cancelled',
    eval: {
      eval_id: idOf(run.name, arm.name, 'eval'),
      run_id: idOf(run.name, 'run'),
      created: date(run.createdAt),
      task: TASK,
      task_id: idOf(run.name, arm.name),
      task_version: 0,
      task_attribs: {},
      task_args: {},
      dataset: {
        name: run.dataset.source,
        location: run.dataset.source,
        samples: run.ids.length,
        sample_ids: run.ids,
        shuffled: false,
      },
      model: arm.model,
      model_generate_config: {},
      model_args: {},
      config: { epochs: run.epochs, epochs_reducer: ['mean'] },
      packages: { swebatch: run.version },
      metadata: { run: run.name, arm: arm.name, agent: arm.agent, rows: run.dataset.hash },
      scorers: [
        { name: SCORER, options: {}, metrics: [{ name: 'inspect_ai/mean', options: {} }], metadata: {} },
      ],
    },
    plan: { name: 'plan', steps: [{ solver: arm.agent, params: {} }], config: {} },
    results: {
      total_samples: total,
      completed_samples: scored.length,
      scores:
        arm.score === null
          ? []
          : [
              {
                name: SCORER,
                scorer: SCORER,
                reducer: 'mean',
                params: {},
                scored_samples: arm.score.n,
                unscored_samples: run.ids.length - arm.score.n,
                metrics: { mean: { name: 'mean', value: arm.score.mean, params: {} } },
              },
            ],
    },
    stats: { started_at: date(run.createdAt), completed_at: date(ends), model_usage: usage },
  };
}

/** Inspect's words for ends that are the agent's own. */
const LIMITS: Partial<Record<ExitReason, string>> = {
  context_window_exceeded: 'context',
  limit_cost: 'cost',
  limit_tokens: 'token',
  limit_wall_time: 'time',
  limit_steps: 'message',
};

function sampleOf(run: WrittenRun, arm: WrittenArm, trial: WrittenTrial) {
  const { attempt, verdict, missing } = trial;
  const { instanceId: id, epoch, exitReason, startedAt, endedAt } = attempt;
  const messages = attempt.messages.flatMap(({ data }, n) => messageOf(data, `${id}-${epoch}-${n}`));
  const limit = exitReason === null ? undefined : LIMITS[exitReason];
  const seconds = (Date.parse(endedAt ?? startedAt) - Date.parse(startedAt)) / 1000;
  return {
    id,
    epoch,
    uuid: idOf(run.name, arm.name, id, String(epoch)),
    input: String(messages.find(({ role }) => role === 'user')?.content ?? ''),
    target: '',
    messages,
    output: outputOf(arm.model, messages),
    ...(verdict && {
      scores: {
        [SCORER]: {
          // Below 1 what is not resolved has its reward.
          value: verdict.resolved ? 1 : Math.min(verdict.reward ?? 0, 0.999),
          metadata: { model_patch: trial.patch, exit_reason: exitReason },
        },
      },
    }),
    metadata: { instance_id: id, repo: trial.repo, exit_reason: exitReason },
    store: {},
    events: [],
    attachments: {},
    model_usage: modelUsage(trial.usage),
    started_at: date(startedAt),
    completed_at: date(endedAt ?? startedAt),
    total_time: seconds,
    working_time: seconds,
    ...(missing !== null &&
      attempt.exitClass !== 'agent' &&
      attempt.exitClass !== 'limit' &&
      attempt.exitClass !== 'model' && {
        error: {
          message: `${exitReason ?? missing}: ${attempt.errorMessage ?? missing}`,
          traceback: '',
          traceback_ansi: '',
        },
      }),
    ...(limit !== undefined && { limit: { type: limit, limit: 0 } }),
  };
}

const summaryOf = (sample: ReturnType<typeof sampleOf>): Json => {
  const { id, epoch, uuid, input, target, scores, error, limit, model_usage, started_at, completed_at } =
    sample;
  const { total_time, working_time, messages } = sample;
  return {
    id,
    epoch,
    uuid,
    input: input.slice(0, 1000),
    target,
    metadata: { instance_id: id },
    ...(scores && { scores: { [SCORER]: { value: scores[SCORER]!.value } } }),
    model_usage,
    started_at,
    completed_at,
    total_time,
    working_time,
    ...(error && { error: error.message }),
    ...(limit && { limit: limit.type }),
    completed: true,
    message_count: messages.length,
  };
};

function outputOf(model: string, messages: readonly Json[]): Json {
  const last = messages.findLast(({ role }) => role === 'assistant');
  return { model, choices: last ? [{ message: last, stop_reason: 'stop' }] : [] };
}

const ROLES: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant', 'tool']);

function messageOf(data: string, id: string): Json[] {
  const {
    role,
    content,
    tool_calls: calls,
    tool_call_id: answers,
    reasoning_content: thought,
  } = recordOf(JSON.parse(data));
  if (!ROLES.has(role)) return [];
  const text = contentText(content);
  const parts =
    typeof thought === 'string' && thought !== ''
      ? [
          { type: 'reasoning', reasoning: thought },
          { type: 'text', text },
        ]
      : text;
  return [
    {
      id,
      role,
      content: parts,
      ...(Array.isArray(calls) && calls.length > 0 && { tool_calls: calls.map(callOf) }),
      ...(role === 'tool' && typeof answers === 'string' && { tool_call_id: answers }),
    },
  ];
}

function callOf(given: unknown): Json {
  const { id, function: named } = recordOf(given);
  const { name, arguments: text } = recordOf(named);
  const said = typeof text === 'string' ? parsed(text) : text;
  return { id: String(id ?? ''), function: String(name ?? ''), arguments: recordOf(said), type: 'function' };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}

function modelUsage(usage: Iterable<readonly [string, WrittenUsage]>): Json {
  const byModel = Map.groupBy(usage, ([model]) => model);
  return Object.fromEntries(
    [...byModel].map(([model, used]) => {
      const { input, cacheRead, cacheWrite, output, reasoning, costNano } = sumOfUsage(
        used.map(([, one]) => one),
      );
      const fields = {
        input_tokens: input,
        input_tokens_cache_read: cacheRead,
        input_tokens_cache_write: cacheWrite,
        output_tokens: output,
        reasoning_tokens: reasoning,
        total_tokens: input + cacheRead + cacheWrite + output,
        ...(costNano !== null && { total_cost: costNano / 1e9 }),
      };
      return [model, fields];
    }),
  );
}

// A zip archive of texts, compressed. Of more than 4 GB the form has other fields, which nothing here needs.

const DEFLATE = 8;
/** The first of January 1980: an archive of the same texts has the same bytes. */
const DATE = 0x0021;

interface Part {
  readonly name: string;
  readonly text: string | Uint8Array;
}

function zipOf(parts: Iterable<Part>): Uint8Array {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, text } of parts) {
    const plain = typeof text === 'string' ? Buffer.from(text) : text;
    const packed = deflateRawSync(plain);
    const id = Buffer.from(name);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    // Names are UTF-8.
    fields.writeUInt16LE(0x0800, 2);
    fields.writeUInt16LE(DEFLATE, 4);
    fields.writeUInt16LE(DATE, 8);
    fields.writeUInt32LE(crc32(plain), 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(plain.length, 18);
    fields.writeUInt16LE(id.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, place, id);
    const head = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, id]);
    bodies.push(head, packed);
    offset += head.length + packed.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  const count = directory.length / 4;
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, entries, end]);
}
