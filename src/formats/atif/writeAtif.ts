/** One attempt in the Agent Trajectory Interchange Format (ATIF 1.8), as the models of the harbor package define it. Pure. */
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { wellFormed } from '../../base/replaceUnits.ts';
import { nanoToDollars } from '../../money.ts';
import { type Thread, type ThreadCall, type TrajectorySource, threadsOf } from '../trajectory.ts';

type Json = Record<string, unknown>;

/** A row of the ledger. */
export interface AtifCall {
  readonly step: number;
  readonly call: number | null;
  readonly state: string;
  readonly model_answered: string | null;
  readonly input_tokens: number | null;
  readonly cache_read_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly output_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly cost_nano: number | null;
}

export interface AtifSource extends TrajectorySource {
  readonly calls: readonly AtifCall[];
  readonly programCalls: readonly ThreadCall[];
}

type Row = AtifSource['messages'][number];
interface Said extends Omit<Row, 'role'> {
  readonly message: Json;
  readonly role: unknown;
}
/** A step before it gets its number. */
interface Step {
  readonly seq: number;
  readonly fields: Json;
  readonly toolIds: ReadonlySet<string>;
  readonly results: Json[];
  /** The place of the newest of its results. */
  lastResult: number;
}

const VERSION = 'ATIF-v1.8';

/** Text where all of it is text; of other parts only that they were there. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  if (!Array.isArray(content)) return JSON.stringify(content);
  return content
    .map((part) => {
      const { text, type } = recordOf(part);
      return typeof part === 'string'
        ? part
        : typeof text === 'string'
          ? text
          : `[${String(type ?? 'part')}]`;
    })
    .join('\n');
}

function argumentsOf(text: unknown): Json {
  if (isRecord(text)) return text;
  try {
    const value: unknown = JSON.parse(String(text));
    return isRecord(value) ? value : { value };
  } catch {
    return { text: String(text) };
  }
}

const toolCallsOf = (message: Json): Json[] =>
  (Array.isArray(message.tool_calls) ? message.tool_calls : []).map((call) => {
    const { id, function: named } = recordOf(call);
    const { name, arguments: text } = recordOf(named);
    return {
      tool_call_id: String(id ?? ''),
      function_name: String(name ?? ''),
      arguments: argumentsOf(text ?? '{}'),
    };
  });

const sum = (rows: readonly AtifCall[], of: (row: AtifCall) => number | null): number | null =>
  rows.every((row) => of(row) === null) ? null : rows.reduce((all, row) => all + (of(row) ?? 0), 0);

const known = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/** The use of all its tries: each may have been billed. */
function usedBy(rows: readonly AtifCall[]) {
  const input = sum(rows, (row) => row.input_tokens);
  const read = sum(rows, (row) => row.cache_read_tokens);
  const written = sum(rows, (row) => row.cache_write_tokens);
  const cost = sum(rows, (row) => row.cost_nano);
  return {
    prompt: input === null ? null : input + (read ?? 0) + (written ?? 0),
    completion: sum(rows, (row) => row.output_tokens),
    cached: read,
    cost: cost === null ? null : nanoToDollars(cost),
    extra: known({
      cache_write_tokens: written || null,
      reasoning_tokens: sum(rows, (row) => row.reasoning_tokens) || null,
      tries: rows.length > 1 ? rows.length : null,
      cost_is_lower_bound: cost !== null && rows.some((row) => row.cost_nano === null) ? true : null,
    }),
  };
}

function metricsOf(rows: readonly AtifCall[]): Json | null {
  if (rows.length === 0) return null;
  const { prompt, completion, cached, cost, extra } = usedBy(rows);
  const fields = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    cached_tokens: cached,
    cost_usd: cost,
  };
  return known({ ...fields, extra: Object.keys(extra).length > 0 ? extra : null });
}

function finalOf(rows: readonly AtifCall[], steps: number): Json {
  const { prompt, completion, cached, cost, extra } = usedBy(rows);
  return known({
    total_prompt_tokens: prompt,
    total_completion_tokens: completion,
    total_cached_tokens: cached,
    total_cost_usd: rows.length === 0 ? 0 : cost,
    total_steps: steps,
    extra: Object.keys(extra).length > 0 ? extra : null,
  });
}

function reasoningOf(message: Json): string | null {
  const said = message.reasoning_content ?? message.reasoning;
  return typeof said === 'string' && said !== '' ? said : null;
}

const timeOf = ({ message, created_at }: Said): string => {
  const at = recordOf(message.extra).timestamp ?? message.timestamp;
  const date = new Date(typeof at === 'number' ? at * 1000 : created_at);
  return Number.isNaN(date.getTime()) ? new Date(0).toISOString() : date.toISOString();
};

/** The rows of the ledger behind each answer: a program's calls say theirs; the built-in agent's n-th answer is its n-th answered step. */
function rowsBehind({
  calls,
  programCalls,
  messages,
}: AtifSource): (said: Said) => readonly AtifCall[] | null {
  if (programCalls.length > 0) {
    const byCall = Map.groupBy(calls, ({ call }) => call);
    const callOf = new Map(
      programCalls.flatMap(({ reply_message, call }) =>
        reply_message === null ? [] : [[reply_message, call] as const],
      ),
    );
    return ({ seq }) => (callOf.has(seq) ? (byCall.get(callOf.get(seq)!) ?? []) : null);
  }
  const answered = [...Map.groupBy(calls, ({ step }) => step).values()].filter((rows) =>
    rows.some(({ state }) => state === 'ok'),
  );
  const turns = messages.filter(({ data }) => recordOf(JSON.parse(data)).role === 'assistant');
  const turnOf = new Map(turns.map(({ seq }, turn) => [seq, turn]));
  return ({ seq }) => answered[turnOf.get(seq) ?? -1] ?? [];
}

function agentStep(said: Said, rows: readonly AtifCall[] | null): Step {
  const { message } = said;
  const calls = toolCallsOf(message);
  return {
    seq: said.seq,
    fields: known({
      timestamp: timeOf(said),
      source: 'agent',
      model_name: rows?.at(-1)?.model_answered,
      message: textOf(message.content),
      reasoning_content: reasoningOf(message),
      tool_calls: calls.length > 0 ? calls : null,
      metrics: rows && metricsOf(rows),
      // A program that rewrites its history sends answers again that belong to earlier calls.
      ...(rows === null ? { is_copied_context: true } : { llm_call_count: 1 }),
      ...taskStepOf(message),
    }),
    toolIds: new Set(calls.map(({ tool_call_id }) => String(tool_call_id))),
    results: [],
    lastResult: -1,
  };
}

/** The step of a task of several steps. */
function taskStepOf({ extra }: Json): Json {
  const { task_step } = recordOf(extra);
  return typeof task_step === 'string' ? { extra: { task_step } } : {};
}

/** Answers of tools, and outputs of commands, belong to the step that asked for them. */
function stepsOf(thread: Thread<Said>, source: AtifSource): Step[] {
  const rowsOf = rowsBehind(source);
  const shown = new Set(source.commands.map(({ message_seq }) => message_seq));
  const steps: Step[] = [];
  for (const said of thread.messages) {
    const { message, role, seq } = said;
    if (role === 'exit') continue;
    if (role === 'assistant') {
      steps.push(agentStep(said, rowsOf(said)));
      continue;
    }
    const content = textOf(message.content);
    const id = typeof message.tool_call_id === 'string' ? message.tool_call_id : null;
    const agent = steps.findLast(({ fields }) => fields.source === 'agent');
    const asker = (id !== null && steps.findLast(({ toolIds }) => toolIds.has(id))) || null;
    const to = asker ?? (role === 'tool' || shown.has(seq) ? agent : undefined);
    if (to) {
      to.results.push({ ...(asker && { source_call_id: id }), content });
      to.lastResult = seq;
    } else {
      const from = role === 'system' ? 'system' : 'user';
      const fields = { timestamp: timeOf(said), source: from, message: content, ...taskStepOf(message) };
      steps.push({ seq, fields, toolIds: new Set(), results: [], lastResult: -1 });
    }
  }
  return steps;
}

/** A sub-agent that began between a call of a tool and its answer was started by it. */
function referTo(sub: Thread<Said>, id: string, steps: readonly Step[]): void {
  const began = sub.messages[0]?.seq;
  if (began === undefined || sub.label === 'title') return;
  const starter = steps.findLast(({ seq, lastResult }) => seq < began && began < lastResult);
  const result = starter?.results.at(-1);
  if (!result) return;
  const refs = Array.isArray(result.subagent_trajectory_ref) ? result.subagent_trajectory_ref : [];
  result.subagent_trajectory_ref = [...refs, { trajectory_id: id }];
}

const numbered = (steps: readonly Step[]): Json[] =>
  steps.map(({ fields, results }, index) => ({
    step_id: index + 1,
    ...fields,
    ...(results.length > 0 && { observation: { results } }),
  }));

function agentOf({ config }: AtifSource, version: string): Json {
  const { agent_class } = recordOf(config.agent);
  const { model_name } = recordOf(config.model);
  const [name, own] = String(agent_class ?? 'default').split('@');
  const program = name !== 'default';
  return {
    name: program ? name : 'swebatch',
    version: program ? (own ?? 'unknown') : version,
    ...(typeof model_name === 'string' && { model_name }),
    extra: { config: recordOf(config.agent), run_by: `swebatch ${version}` },
  };
}

/** `version` is that of swebatch. */
export function atifOf(source: AtifSource, version: string): Json {
  const said = source.messages.map((row): Said => {
    const message = recordOf(JSON.parse(row.data));
    return { ...row, message, role: message.role };
  });
  const [main, ...others] = threadsOf(said, source.programCalls);
  const { run, arm, instanceId, epoch, number } = source;
  const session = `${run}/${arm}/${instanceId}/${epoch}/${number}`;
  const agent = agentOf(source, version);
  const steps = stepsOf(main, source);
  const subs = others.filter(({ messages }) => messages.length > 0);
  for (const sub of subs) referTo(sub, sub.name, steps);
  const document = (thread: Thread<Said>, own: readonly Step[], calls: readonly AtifCall[]): Json => ({
    schema_version: VERSION,
    session_id: session,
    trajectory_id: thread.name,
    agent,
    steps: own.length > 0 ? numbered(own) : [nothing(source)],
    final_metrics: finalOf(calls, Math.max(1, own.length)),
  });
  const callsOf = ({ calls }: Thread<Said>) =>
    source.calls.filter(({ call }) => call !== null && calls.includes(call));
  return wellFormed({
    ...document({ ...main, name: session }, steps, source.calls),
    extra: endOf(source, others),
    ...(subs.length > 0 && {
      subagent_trajectories: subs.map((sub) => ({
        ...document(sub, stepsOf(sub, source), callsOf(sub)),
        extra: { label: sub.label ?? sub.name },
      })),
    }),
  }) as Json;
}

const nothing = ({ startedAt, exitReason }: AtifSource): Json => ({
  step_id: 1,
  timestamp: startedAt,
  source: 'system',
  message: `Nothing was said: ${exitReason ?? 'the attempt goes on'}.`,
});

function endOf(source: AtifSource, others: readonly Thread<Said>[]): Json {
  const counted = others.find(({ label }) => label === 'count_tokens');
  return known({
    instance_id: source.instanceId,
    run: source.run,
    arm: source.arm,
    epoch: source.epoch,
    attempt: source.number,
    started_at: source.startedAt,
    ended_at: source.endedAt,
    exit_reason: source.exitReason,
    exit_class: source.exitClass,
    exit_status: source.exitStatus,
    error: source.errorMessage,
    count_tokens_calls: counted?.calls.length,
  });
}
