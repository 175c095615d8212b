/**
 * `--model scripted:PATH`: replies from a file, or from a folder of <instance_id>.json, free of charge. For demos, tests and
 * benchmarks. A script is `{"latency_ms"?: n, "replies": [...]}` or the bare list; a reply is a text, or
 * `{"content", "tool_calls"?, "finish_reason"?, "usage"?}`. A finished script repeats its last reply.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readUsage } from '../dialects/completion.ts';
import type { Clock } from '../limits/clock.ts';
import {
  type Model,
  ModelConfigError,
  type ModelFactory,
  type ModelForAttempt,
  modelFailure,
} from '../model.ts';
import { answerFrom, type CannedAnswer } from './canned.ts';

const toolCall = z.strictObject({
  id: z.string().optional(),
  type: z.literal('function').default('function'),
  function: z.strictObject({ name: z.string(), arguments: z.union([z.string(), z.looseObject({})]) }),
});

const replySchema = z.union([
  z.string().transform((content) => ({ content })),
  z.strictObject({
    content: z.string().nullish(),
    tool_calls: z.array(toolCall).optional(),
    finish_reason: z.string().optional(),
    refusal: z.string().optional(),
    usage: z.looseObject({}).optional(),
    model: z.string().optional(),
  }),
]);
type ScriptedReply = z.output<typeof replySchema>;

const repliesSchema = z.array(replySchema).min(1);
const scriptSchema = z.union([
  repliesSchema.transform((replies) => ({ replies, latency_ms: undefined })),
  z.strictObject({ latency_ms: z.number().min(0).optional(), replies: repliesSchema }),
]);
type Script = z.output<typeof scriptSchema>;

/** An instance id that may become a file name: never a way out of the folder. */
const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/;

function readScript(file: string): Script {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new Error(
      missing ? `there is no scripted replies file ${file}` : `${file} cannot be read: ${error}`,
    );
  }
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`);
  }
  // The two forms are told apart here, so that a mistake is named where it is and not as "matches no form".
  const parsed = Array.isArray(data)
    ? scriptSchema.options[0].safeParse(data)
    : scriptSchema.options[1].safeParse(data);
  if (!parsed.success)
    throw new Error(`${file} is not a script of replies: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

function fileFor(path: string, isFolder: boolean, instanceId: string): string {
  if (!isFolder) return path;
  if (!FILE_NAME.test(instanceId))
    throw new Error(
      `the instance id ${JSON.stringify(instanceId)} cannot name a file of scripted replies in ${path}`,
    );
  return join(path, `${instanceId}.json`);
}

function answerOf(reply: ScriptedReply, index: number, name: string): CannedAnswer {
  const scripted = { tool_calls: undefined, finish_reason: undefined, usage: undefined, ...reply };
  const { tool_calls, finish_reason, usage, ...rest } = scripted;
  const calls = tool_calls?.map((call, at) => ({ ...call, id: call.id ?? `call_${index + 1}_${at + 1}` }));
  // As a server that answers with the model asked for; a script may name another.
  const { model, ...message } = { model: name, ...rest };
  const body = {
    id: `scripted-${index + 1}`,
    object: 'chat.completion',
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', ...message, ...(calls ? { tool_calls: calls } : {}) },
        finish_reason: finish_reason ?? (calls ? 'tool_calls' : 'stop'),
      },
    ],
    ...(usage ? { usage } : {}),
  };
  return { body, usage: usage ? readUsage(usage).usage : null, costNano: 0 };
}

interface ScriptedOptions {
  readonly name: string;
  readonly path: string;
  /** Overrides the script's own latency. */
  readonly latencyMs: number | undefined;
  readonly clock: Clock;
}

function scriptedModel(options: ScriptedOptions, isFolder: boolean, attempt: ModelForAttempt): Model {
  const { name, clock } = options;
  let script: Script | { readonly problem: string } | undefined;
  let next = 0;
  function load(): Script | { readonly problem: string } {
    try {
      return readScript(fileFor(options.path, isFolder, attempt.instanceId));
    } catch (error) {
      return { problem: `${(error as Error).message} (instance ${attempt.instanceId})` };
    }
  }
  return {
    name,
    templateVars: () => ({ model_name: name, model_kwargs: {} }),
    async query(_messages, queryOptions = {}) {
      script ??= load();
      if ('problem' in script)
        return modelFailure('PROVIDER_NOT_CONFIGURED', script.problem, {
          provider: 'scripted',
          kind: 'config',
        });
      const index = Math.min(next, script.replies.length - 1);
      const answer = answerOf(script.replies[index]!, next, name);
      next += 1;
      const latency = options.latencyMs ?? script.latency_ms ?? 0;
      return answerFrom(answer, name, latency, queryOptions, clock);
    },
  };
}

export function createScriptedFactory(options: ScriptedOptions): ModelFactory {
  const stat = statSync(options.path, { throwIfNoEntry: false });
  if (!stat)
    throw new ModelConfigError(
      `there are no scripted replies at ${options.path}: give a JSON file, or a folder of <instance_id>.json`,
    );
  const isFolder = stat.isDirectory();
  if (!isFolder) {
    try {
      readScript(options.path);
    } catch (error) {
      throw new ModelConfigError((error as Error).message);
    }
  }
  return {
    name: options.name,
    free: true,
    create: (attempt) => scriptedModel(options, isFolder, attempt),
    close: async () => undefined,
  };
}
