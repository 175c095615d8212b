/**
 * One attempt as mini-swe-agent's trajectory file: format mini-swe-agent-1.1, or 1 where the attempt ran with agent.compat of version 1.
 * Made from the stored messages; command output is stored once, with the commands, and put back here.
 */

import { stringify } from 'yaml';
import { isRecord } from '../../base/isRecord.ts';
import { wellFormed } from '../../base/replaceUnits.ts';
import { nanoToDollars } from '../../money.ts';
import type { ExitClass, ExitReason } from '../../outcome.ts';
import { type ShownCommand, type TrajectorySource, threadsOf } from '../trajectory.ts';

type Json = Record<string, unknown>;

export interface TrajectoryOptions {
  /** Version of swebatch, for `info`. */
  readonly version?: string;
  /** Gives a history the form in which mini-swe-agent keeps it; without it the messages are written as they are. */
  readonly published?: (messages: readonly Json[], model: unknown) => Promise<readonly Json[]>;
}

export async function trajectoryOf(whole: TrajectorySource, options: TrajectoryOptions = {}): Promise<Json> {
  const [{ messages }, ...others] = threadsOf(whole.messages, whole.programCalls ?? []);
  const attempt = { ...whole, messages };
  const compat = isRecord(attempt.config.agent) ? attempt.config.agent.compat : undefined;
  return compat === 'mini-swe-agent-1'
    ? {
        info: infoOf(attempt, options),
        messages: await messagesV1(attempt, options),
        ...tail(attempt, 'mini-swe-agent-1'),
      }
    : {
        info: infoOf(attempt, options),
        messages: await messagesV11(attempt, options),
        ...(others.length > 0 && {
          sub_trajectories: await Promise.all(
            others.map(async (thread) => ({
              id: thread.name,
              label: thread.label,
              model_calls: thread.calls.length,
              messages: await messagesV11(
                { ...attempt, messages: thread.messages, exitStatus: null },
                options,
              ),
            })),
          ),
        }),
        ...tail(attempt, 'mini-swe-agent-1.1'),
      };
}

/** Characters that no UTF-8 reader takes become U+FFFD, and the file says how many: the record has them as they came. */
export async function trajectoryJson(
  attempt: TrajectorySource,
  options: TrajectoryOptions = {},
): Promise<string> {
  const trajectory = await trajectoryOf(attempt, options);
  const replaced = loneSurrogates(trajectory);
  const { info } = trajectory;
  if (replaced > 0 && isRecord(info))
    trajectory.info = {
      ...info,
      swebatch: { ...(isRecord(info.swebatch) ? info.swebatch : {}), replaced_characters: replaced },
    };
  return `${JSON.stringify(wellFormed(trajectory), null, 2)}\n`;
}

function loneSurrogates(value: unknown): number {
  if (typeof value === 'string')
    return value.isWellFormed() ? 0 : (value.match(/\p{Surrogate}/gu)?.length ?? 0);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, inner) => sum + loneSurrogates(inner), 0);
}

/** Relative to the folder of its arm and epoch. */
export const trajectoryPath = (
  attempt: Pick<TrajectorySource, 'instanceId' | 'number' | 'final'>,
): string => {
  const id = attempt.instanceId;
  return `trajectories/${id}/${id}${attempt.final ? '' : `.attempt-${attempt.number}`}.traj.json`;
};

const tail = (attempt: TrajectorySource, format: string): Json => ({
  trajectory_format: format,
  instance_id: attempt.instanceId,
});

const text = (bytes: Uint8Array | null): string => (bytes === null ? '' : new TextDecoder().decode(bytes));

const BEHAVIOUR: Record<string, string> = { 'mini-swe-agent-1': '1.17.5', 'mini-swe-agent-2': '2.4.6' };

function infoOf(attempt: TrajectorySource, options: TrajectoryOptions): Json {
  const { agent, model, environment } = attempt.config;
  const compat = isRecord(agent) ? String(agent.compat ?? '') : '';
  const kind = (part: unknown, key: string): Json =>
    isRecord(part) && typeof part[key] === 'string' ? { type: part[key] } : {};
  return {
    model_stats: {
      // null where nothing is known: a cost of 0 would be a claim.
      instance_cost: attempt.costNano === null ? null : nanoToDollars(attempt.costNano),
      api_calls: attempt.steps,
    },
    config: {
      agent: agent ?? {},
      agent_type: `swebatch.agent.${kind(agent, 'agent_class').type ?? 'default'}`,
      model: model ?? {},
      model_type: `swebatch.model.${kind(model, 'model_class').type ?? 'openai'}`,
      environment: environment ?? {},
      environment_type: `swebatch.environment.${kind(environment, 'environment_class').type ?? 'docker'}`,
    },
    // Readers key their behaviour on this version; without compat none of theirs is claimed.
    ...(BEHAVIOUR[compat] ? { mini_version: BEHAVIOUR[compat] } : {}),
    exit_status: attempt.exitStatus,
    submission: text(attempt.submission),
    ...(attempt.errorMessage === null ? {} : { exception_str: attempt.errorMessage }),
    swebatch: {
      ...(options.version === undefined ? {} : { version: options.version }),
      run: attempt.run,
      arm: attempt.arm,
      epoch: attempt.epoch,
      attempt: attempt.number,
      exit_reason: attempt.exitReason,
      exit_class: attempt.exitClass,
      started_at: attempt.startedAt,
      ended_at: attempt.endedAt,
      ...(attempt.unknownCalls > 0 ? { cost_is_lower_bound: true } : {}),
    },
  };
}

async function messagesV11(
  attempt: TrajectorySource,
  { published }: TrajectoryOptions,
): Promise<readonly Json[]> {
  const shown = new Map(
    attempt.commands.flatMap((c) => (c.message_seq === null ? [] : [[c.message_seq, c] as const])),
  );
  const messages = attempt.messages.map((row) => {
    const message = JSON.parse(row.data) as Json;
    const command = shown.get(row.seq);
    return command ? withRawOutput(message, command) : message;
  });
  const ended = attempt.exitStatus !== null && messages.at(-1)?.role !== 'exit';
  const all = ended ? [...messages, exitMessage(attempt)] : messages;
  return published ? published(all, attempt.config.model) : all;
}

function withRawOutput(message: Json, command: ShownCommand): Json {
  const extra = isRecord(message.extra) ? message.extra : {};
  const omitted = command.omitted_bytes > 0 ? { raw_output_omitted_bytes: command.omitted_bytes } : {};
  const { raw_output: kept, ...rest } = extra;
  return {
    ...message,
    extra: { raw_output: kept ?? text(command.output), ...omitted, returncode: command.exit_code, ...rest },
  };
}

/** The exit message for an attempt whose agent could not say it: the container died, the run was stopped. */
const exitMessage = (attempt: TrajectorySource): Json => ({
  role: 'exit',
  content: attempt.submission === null ? attempt.exitStatus : text(attempt.submission),
  extra: {
    exit_status: attempt.exitStatus,
    submission: text(attempt.submission),
    ...(attempt.errorMessage === null ? {} : { exception_str: attempt.errorMessage }),
  },
});

/** Version 1 knows role, content, timestamp and the reply; its last message is the user's. */
async function messagesV1(attempt: TrajectorySource, { published }: TrajectoryOptions): Promise<Json[]> {
  const messages = attempt.messages.map((row) => JSON.parse(row.data) as Json);
  const shaped = (await published?.(messages, attempt.config.model)) ?? messages;
  return messages.map((message, index) => {
    const extra = isRecord(message.extra) ? message.extra : {};
    const timestamp =
      message.timestamp ?? extra.timestamp ?? Date.parse(attempt.messages[index]!.created_at) / 1000;
    return {
      role: message.role === 'exit' || message.role === 'tool' ? 'user' : message.role,
      content: message.content,
      timestamp,
      ...(extra.response === undefined ? {} : { extra: { response: responseIn(shaped[index]!) } }),
    };
  });
}

/** A reply of the Responses API is the message itself. */
function responseIn(message: Json): unknown {
  const { extra, ...reply } = message;
  return message.object === 'response' ? reply : isRecord(extra) ? extra.response : undefined;
}

interface EndedTrial {
  readonly instanceId: string;
  readonly exitStatus: string | null;
  readonly exitReason: ExitReason | null;
  readonly exitClass: ExitClass | null;
}

export function exitStatusesYaml(rows: readonly EndedTrial[]): string {
  const ended = rows.filter((row) => row.exitReason !== null && row.exitClass !== null);
  const idsBy = (part: readonly EndedTrial[], keyOf: (row: EndedTrial) => string) =>
    sorted(Map.groupBy(part, keyOf), (group) => group.map((row) => row.instanceId));
  const byClass = sorted(
    Map.groupBy(ended, (row) => String(row.exitClass)),
    (group) => idsBy(group, (row) => String(row.exitReason)),
  );
  return stringify(
    {
      instances_by_exit_status: idsBy(ended, (row) => row.exitStatus ?? String(row.exitReason)),
      instances_by_exit_class: byClass,
    },
    { indentSeq: false, lineWidth: 0 },
  );
}

const sorted = <T, U>(groups: Map<string, T>, to: (group: T) => U): Map<string, U> =>
  new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, group]) => [key, to(group)]));
