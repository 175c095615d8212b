// Requests recorded from the real agents (1.17.5 and 2.4.6): driven with the same replies and outputs, ours sends the same messages,
// request by request, and ends the same. The recordings stay outside the project.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createAgent } from '../../src/agent/loop/agent.ts';
import type { Message } from '../../src/model/model.ts';
import { config, fakeEnvironment, fakeModel, reply, result, sent } from './fakes.ts';

const shared = join(import.meta.dirname, '..', '..', '..', 'shared');

interface Golden {
  version: string;
  config: string;
  instance: { instance_id: string; problem_statement: string };
  replies: { message: Message; finish_reason: string }[];
  requests: { message_counts: number[]; last_messages: Message[]; other_fields: { tools?: unknown } };
  outputs: { output: string; returncode: number }[];
  exit_status: string;
  submission: string;
  final_messages: Message[];
}
const FILES = {
  'v1-swebench-text': {
    file: 'mini-swe-agent-1.17.5.swebench.yaml',
    compat: 'mini-swe-agent-1',
    protocol: 'bash-block',
  },
  'v2-swebench-toolcall': {
    file: 'mini-swe-agent-2.4.6.swebench.yaml',
    compat: 'mini-swe-agent-2',
    protocol: 'tool-call',
  },
  'v2-swebench_backticks-text': {
    file: 'mini-swe-agent-2.4.6.swebench_backticks.yaml',
    compat: 'mini-swe-agent-2',
    protocol: 'bash-block',
  },
} as const;

describe.skipIf(!existsSync(join(shared, 'golden', 'requests')))(
  'golden requests (skipped without ../shared)',
  () => {
    for (const [name, { file, compat, protocol }] of Object.entries(FILES))
      test(name, async () => {
        const golden = JSON.parse(
          readFileSync(join(shared, 'golden', 'requests', `${name}.json`), 'utf8'),
        ) as Golden;
        const yaml = parse(readFileSync(join(shared, 'data', 'configs', file), 'utf8'));
        const model = fakeModel(
          golden.replies.map((r) =>
            reply(r.message.content as string | null, {
              message: r.message,
              toolCalls: r.message.tool_calls ?? [],
              finishReason: r.finish_reason,
            }),
          ),
        );
        const submit = `\n  COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT  \n${golden.submission}`;
        const recorded = golden.outputs.map((o) => result(o.output, { exitCode: o.returncode }));
        // The output of `printf keep`, which the published agent loses, is not among the recorded ones in every file.
        const environment = fakeEnvironment([]);
        let next = 0;
        environment.execute = async (command: string) => {
          environment.commands.push(command);
          if (command.includes("%s' 'diff --git")) return result(submit);
          if (command === 'printf keep') return result('keep');
          return recorded[next++] ?? Promise.reject(new Error(`no output for ${command}`));
        };
        const { observation_template, format_error_template } = yaml.model;
        const agent = createAgent({
          instanceId: golden.instance.instance_id,
          model,
          environment,
          config: config({
            compat,
            protocol,
            system_template: yaml.agent.system_template,
            instance_template: yaml.agent.instance_template,
            observation_template: yaml.agent.action_observation_template ?? observation_template,
            format_error_template: yaml.agent.format_error_template ?? format_error_template,
            step_limit: 250,
            ...(name.includes('backticks')
              ? { action_regex: '```mswea_bash_command\\s*\\n([\\s\\S]*?)\\n```' }
              : {}),
          }),
        });
        const ended = await agent.run(golden.instance.problem_statement);

        expect(model.queries).toHaveLength(golden.requests.message_counts.length);
        for (const [k, count] of golden.requests.message_counts.entries()) {
          const query = model.queries[k];
          expect(JSON.stringify(sent(query?.messages ?? []))).toBe(
            JSON.stringify(golden.requests.last_messages.slice(0, count)),
          );
          expect(query?.options.tools).toEqual(golden.requests.other_fields.tools);
        }
        expect(ended.exitStatus).toBe(golden.exit_status);
        expect(ended.submission).toBe(golden.submission);
        expect(sent(ended.messages)).toEqual(
          golden.final_messages.map((m) => {
            const { timestamp: _, ...message } = m;
            return message;
          }),
        );
        expect(next).toBe(golden.outputs.length);
      });
  },
);
