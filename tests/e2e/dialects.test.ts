// A run in each maker's own protocol, in a real container: recorded, priced, verified, and played again without the provider.
import { afterEach, describe, expect, test } from 'vitest';
import { type Bench, faultBench } from '../faults/support.ts';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { jsonReply, startRawServer } from '../support/rawServer.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const EDIT = 'echo two > new.txt; git add -N .';
const SUBMIT = 'git diff > ../p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat ../p';

const claude = (id: string, command: string) =>
  jsonReply({
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content: [
      { type: 'thinking', thinking: 'hm', signature: `sig-${id}` },
      { type: 'tool_use', id: `toolu_${id}`, name: 'bash', input: { command } },
    ],
    stop_reason: 'tool_use',
    usage: {
      input_tokens: 100,
      output_tokens: 10,
      cache_read_input_tokens: 50,
      cache_creation_input_tokens: 20,
    },
  });
const gpt = (id: string, command: string) =>
  jsonReply({
    id: `resp_${id}`,
    object: 'response',
    status: 'completed',
    model: 'gpt-x',
    output: [
      { type: 'reasoning', id: `rs_${id}`, summary: [], encrypted_content: `enc-${id}` },
      {
        type: 'function_call',
        id: `fc_${id}`,
        call_id: `call_${id}`,
        name: 'bash',
        arguments: JSON.stringify({ command }),
      },
    ],
    usage: {
      input_tokens: 170,
      input_tokens_details: { cached_tokens: 50 },
      output_tokens: 10,
      total_tokens: 180,
    },
  });
const gemini = (id: string, command: string) =>
  jsonReply({
    candidates: [
      {
        content: {
          role: 'model',
          parts: [{ functionCall: { name: 'bash', args: { command } }, thoughtSignature: `s-${id}` }],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 170, cachedContentTokenCount: 50, candidatesTokenCount: 10 },
    modelVersion: 'gemini-x',
    responseId: `r-${id}`,
  });

describe.skipIf(!docker)('a run in a dialect of its own (needs Docker)', () => {
  test.each([
    ['messages', claude, 'sig-1'],
    ['responses', gpt, 'enc-1'],
    ['gemini', gemini, 's-1'],
  ] as const)('%s', async (dialect, reply, thought) => {
    await using server = await startRawServer([reply('1', EDIT), reply('2', SUBMIT)]);
    bench = await faultBench({ ids: ['a__a-1'] });
    const flags = [`model.dialect=${dialect}`, `model.base_url=${server.url}`, 'agent.protocol=tool-call'];
    const recorded = await bench.run(
      bench.id,
      flags.flatMap((flag) => ['-c', flag]),
    );
    expect(recorded.code, recorded.stderr).toBe(0);
    expect(server.requests).toHaveLength(2);
    expect(JSON.stringify(server.requests[1]!.body)).toContain(thought);
    expect(bench.trials(bench.id)).toMatchObject([{ exit_reason: 'submitted', steps: 2 }]);
    const [patch] = Object.values(bench.preds(bench.id)) as { model_patch: string }[];
    expect(patch!.model_patch).toContain('+two');

    const again = await bench.run(`${bench.id}-again`, [
      ...['-m', `replay:${bench.id}`],
      ...['-c', 'agent.protocol=tool-call'],
    ]);
    expect(again.code, again.stderr).toBe(0);
    expect(server.requests).toHaveLength(2);
    expect(bench.preds(`${bench.id}-again`)).toEqual(bench.preds(bench.id));
    for (const verb of ['verify', 'report', 'show'])
      expect((await cli([verb, bench.id, '-o', bench.root])).code, verb).toBe(0);
  });
});
