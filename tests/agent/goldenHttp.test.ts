// The same recordings through the HTTP client: configuration file, agent, model client and a server that keeps what it is sent.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';
import type { Message, ToolCall } from '../../src/model/model.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';
import { fakeEnvironment, result } from './fakes.ts';

const shared = join(import.meta.dirname, '..', '..', '..', 'shared');
const read = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);

interface Golden {
  instance: { instance_id: string; problem_statement: string };
  replies: { message: { content: string | null; tool_calls?: ToolCall[] }; finish_reason: string }[];
  requests: { message_counts: number[]; last_messages: Message[]; other_fields: Record<string, unknown> };
  outputs: { output: string; returncode: number }[];
  exit_status: string;
  submission: string;
  prediction: { model_name_or_path: string; instance_id: string; model_patch: string };
}

describe.skipIf(!existsSync(join(shared, 'golden', 'requests')))(
  'over HTTP (skipped without ../shared)',
  () => {
    test.each([
      ['v1-swebench-text', 'mini-swe-agent-1.17.5.swebench.yaml', 'mini-swe-agent-1'],
      ['v2-swebench-toolcall', 'mini-swe-agent-2.4.6.swebench.yaml', 'mini-swe-agent-2'],
      ['v2-swebench_backticks-text', 'mini-swe-agent-2.4.6.swebench_backticks.yaml', 'mini-swe-agent-2'],
    ])('%s', async (name, file, compat) => {
      const golden = JSON.parse(
        readFileSync(join(shared, 'golden', 'requests', `${name}.json`), 'utf8'),
      ) as Golden;
      const server = await startFakeModelServer({
        replies: golden.replies.map(({ message, finish_reason }) => ({ ...message, finish_reason })),
      });
      const { config } = loadConfig({
        specs: [join(shared, 'data', 'configs', file), `agent.compat=${compat}`],
        overrides: {
          model: { model_name: golden.prediction.model_name_or_path, base_url: server.url, prices: 'free' },
        },
        readFile: read,
        cwd: '/',
      });
      const factory = await createModelFactory(config.model, { apiKey: 'test' });
      const outputs = golden.outputs.map((o) => result(o.output, { exitCode: o.returncode }));
      const environment = fakeEnvironment([]);
      environment.execute = async (command) => {
        if (command.includes("%s' 'diff --git"))
          return result(`\n  COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT  \n${golden.submission}`);
        return command === 'printf keep'
          ? result('keep')
          : (outputs.shift() ?? Promise.reject(new Error(command)));
      };
      const { instance_id: instanceId, problem_statement: task } = golden.instance;
      const model = factory.create({ instanceId, epoch: 0 });
      const ended = await createAgent({ instanceId, model, environment, config: config.agent }).run(task);
      await factory.close();
      await server.close();

      expect(server.requests).toHaveLength(golden.requests.message_counts.length);
      for (const [k, { body }] of server.requests.entries()) {
        const { model: asked, messages, stream: _, ...others } = body as Record<string, unknown>;
        expect(JSON.stringify(messages)).toBe(
          JSON.stringify(golden.requests.last_messages.slice(0, golden.requests.message_counts[k])),
        );
        expect(asked).toBe('openai/fake');
        expect(others).toEqual(golden.requests.other_fields);
      }
      expect(ended.exitStatus).toBe(golden.exit_status);
      expect({
        model_name_or_path: model.name,
        instance_id: instanceId,
        model_patch: ended.submission,
      }).toEqual(golden.prediction);
    });
  },
);
