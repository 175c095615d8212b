// Each configuration of mini-swe-agent runs with `-c FILE -m NAME` and nothing else, in the protocol that its own program would use.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type Bench, faultBench } from '../faults/support.ts';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { jsonReply, startRawServer } from '../support/rawServer.ts';

const docker = await dockerAvailable();
const configs = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'configs');
const files = existsSync(configs) ? readdirSync(configs) : [];
let bench: Bench;
afterEach(() => bench?.close());

const EDIT = 'echo two > /testbed/new.txt; cd /testbed; git add -N .; git diff > /tmp/patch.txt';
const SUBMIT = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/patch.txt';

const FENCE = (language: string) => (command: string) =>
  `THOUGHT: x\n\n\`\`\`${language}\n${command}\n\`\`\``;
const TAG = (command: string) => `THOUGHT: x\n\n<mswea_bash_command>${command}</mswea_bash_command>`;
const IN_TEXT: Readonly<Record<string, (command: string) => string>> = {
  '1.17.5.swebench': FENCE('bash'),
  '2.4.6.default': FENCE('mswea_bash_command'),
  '2.4.6.mini_textbased': FENCE('mswea_bash_command'),
  '2.4.6.swebench_backticks': FENCE('mswea_bash_command'),
  '2.4.6.swebench_xml': TAG,
};

/** Classes that ask a service of their own, at an address that their program does not let be changed. */
const SERVICE: Readonly<Record<string, { readonly key: string; readonly model: string }>> = {
  '2.4.6.swebench_modal': { key: 'PORTKEY_API_KEY', model: 'gpt-5-mini' },
  '2.4.6.swebench_xml': { key: 'OPENROUTER_API_KEY', model: 'minimax/minimax-m2' },
};
const CLAUDE = { key: 'ANTHROPIC_API_KEY', model: 'anthropic/claude-sonnet-4-5' };
/** Its own images have a user and a folder that this one has not, and it asks for more CPUs than a small machine has. */
const ADAPTED: Readonly<Record<string, readonly string[]>> = {
  '2.4.6.programbench': [
    'environment.cpus=1',
    'environment.memory=1g',
    'environment.user=root',
    'environment.cwd=/testbed',
  ],
};

const chat = (message: object) =>
  jsonReply({
    ...{ id: 'c1', object: 'chat.completion', model: 'm' },
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }],
    usage: { prompt_tokens: 100, completion_tokens: 10, cost: 0.001 },
  });
const claude = (content: unknown[], stop_reason: string) =>
  jsonReply({
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-x', content, stop_reason },
    usage: { input_tokens: 100, output_tokens: 10 },
  });
const says = (text: string, service = false) =>
  service ? chat({ content: text }) : claude([{ type: 'text', text }], 'end_turn');
const calls = (id: string, command: string, service = false) =>
  service
    ? chat({
        content: null,
        tool_calls: [
          { id, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command }) } },
        ],
      })
    : claude([{ type: 'tool_use', id, name: 'bash', input: { command } }], 'tool_use');

const run = (file: string, server: string, more: string[] = [], { key, model } = CLAUDE) =>
  cli(
    [
      ...['run', '--subset', bench.dataset, '-o', bench.root, '--run-id', bench.id, '--progress', 'plain'],
      ...['-c', join(configs, file), '-m', model, ...more],
    ],
    { env: { [key]: 'sk-test-0123456789', ANTHROPIC_BASE_URL: server } },
  );

describe.skipIf(!docker || files.length === 0)(
  'configurations of mini-swe-agent (needs Docker and ../shared)',
  () => {
    test.each(files.map((file) => [file.replace(/^mini-swe-agent-|\.yaml$/g, ''), file] as const))(
      '%s runs unchanged',
      async (name, file) => {
        const inText = IN_TEXT[name];
        const service = SERVICE[name];
        const reply = (id: string, command: string) =>
          inText ? says(inText(command), service !== undefined) : calls(id, command, service !== undefined);
        await using server = await startRawServer([reply('t1', EDIT), reply('t2', SUBMIT)]);
        bench = await faultBench({ ids: ['a__a-1'] });
        const at = service ? [`model.base_url=${server.url}`, 'model.prices=free'] : [];
        const set = [...at, ...(ADAPTED[name] ?? [])].flatMap((value) => ['-c', value]);
        const done = await run(file, server.url, set, service);
        expect(done.code, done.stderr).toBe(0);
        expect(bench.trials(bench.id)).toMatchObject([{ exit_reason: 'submitted', steps: 2 }]);
        expect(bench.preds(bench.id)['a__a-1']!.model_patch).toContain('+two');
        for (const { path, body } of server.requests) {
          expect(path).toBe(service ? '/chat/completions' : '/v1/messages');
          expect('tools' in (body as object)).toBe(inText === undefined);
        }
        const exported = join(bench.root, bench.id, 'trajectories', 'a__a-1', 'a__a-1.traj.json');
        expect(JSON.parse(readFileSync(exported, 'utf8')).info.exit_status).toBe('Submitted');
      },
    );

    test('a model that never keeps to the form pauses the run, which says what the cause may be', async () => {
      await using server = await startRawServer([says('I will not use your form.')]);
      bench = await faultBench({ ids: Array.from({ length: 12 }, (_, n) => `a__a-${n + 1}`) });
      const quick = ['run.breaker.probe_after_s=0.1', 'run.breaker.max_probes=2'].flatMap((set) => [
        '-c',
        set,
      ]);
      const done = await run('mini-swe-agent-2.4.6.swebench.yaml', server.url, ['-w', '2', ...quick]);
      expect(done.code).not.toBe(0);
      expect(done.stderr).toContain(
        'all ended on malformed replies: prompt and agent.protocol may not fit together',
      );
      const ended = bench.trials(bench.id).filter(({ steps }) => (steps ?? 0) > 0);
      expect(ended.length).toBeLessThan(12);
    });
  },
);
