// A run in each dialect, one of them in a real container: recorded without its key, priced, verified, shown, played again without the provider, and
// exported as mini-swe-agent writes it, from where it is replayed and imported.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type Bench, CANARY, faultBench } from '../faults/support.ts';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { jsonReply, startRawServer } from '../support/rawServer.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const EDIT = 'echo two > new.txt; git add -N .';
const SUBMIT = 'git diff > ../p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat ../p';

const chat = (id: string, command: string) =>
  jsonReply({
    id: `c-${id}`,
    object: 'chat.completion',
    model: 'chat-x',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          reasoning_content: `hm-${id} ${CANARY}`,
          tool_calls: [
            {
              id: `call_${id}`,
              type: 'function',
              function: { name: 'bash', arguments: JSON.stringify({ command }) },
            },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 170, prompt_tokens_details: { cached_tokens: 50 }, completion_tokens: 10 },
  });
const claude = (id: string, command: string) =>
  jsonReply({
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content: [
      { type: 'thinking', thinking: `hm <b>${CANARY}</b>`, signature: `sig-${id}` },
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
      {
        type: 'reasoning',
        id: `rs_${id}`,
        summary: [{ type: 'summary_text', text: `hm ${CANARY}` }],
        encrypted_content: `enc-${id}`,
      },
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
          parts: [
            { text: `hm ${CANARY}`, thought: true },
            { functionCall: { name: 'bash', args: { command } }, thoughtSignature: `s-${id}` },
          ],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 170, cachedContentTokenCount: 50, candidatesTokenCount: 10 },
    modelVersion: 'gemini-x',
    responseId: `r-${id}`,
  });

const of = (dialect: string, url: string) =>
  [`model.dialect=${dialect}`, `model.base_url=${url}`, 'agent.protocol=tool-call'].flatMap((flag) => [
    '-c',
    flag,
  ]);

/** What a dialect carries does not depend on where its commands run: containers are started for one of them. */
function onThisMachine(): Record<string, unknown> {
  const cwd = join(tempDir('swebatch-dialect-'), 'testbed');
  mkdirSync(cwd);
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...words], { cwd });
  git('init', '-q');
  git('commit', '-q', '--allow-empty', '-m', 'begin');
  return { environment_class: 'local', cwd, memory: undefined, pull: undefined };
}

const trajectoryIn = (folder: string) =>
  readFileSync(join(folder, 'trajectories', 'a__a-1', 'a__a-1.traj.json'), 'utf8');

describe.skipIf(!docker)('a run in a dialect of its own (needs Docker)', () => {
  test.each([
    ['chat', chat, 'hm-1', {}],
    ['messages', claude, 'sig-1', onThisMachine()],
    ['responses', gpt, 'enc-1', onThisMachine()],
    ['gemini', gemini, 's-1', onThisMachine()],
  ] as const)('%s: every verb holds', async (dialect, reply, thought, environment) => {
    await using server = await startRawServer([reply('1', EDIT), reply('2', SUBMIT)]);
    bench = await faultBench({ ids: ['a__a-1'], environment });
    const { id, root } = bench;
    const recorded = await bench.run(id, of(dialect, server.url));
    expect(recorded.code, recorded.stderr).toBe(0);
    expect(server.requests).toHaveLength(2);
    // What the provider signed goes back to it unchanged, a key inside included.
    expect(JSON.stringify(server.requests[1]!.body)).toContain(thought);
    expect(JSON.stringify(server.requests[1]!.body)).toContain(CANARY);
    expect(bench.trials(id)).toMatchObject([{ exit_reason: 'submitted', steps: 2 }]);
    const [patch] = Object.values(bench.preds(id)) as { model_patch: string }[];
    expect(patch!.model_patch).toContain('+two');
    const calls = () =>
      bench.query<object>(
        'SELECT input_tokens, cache_read_tokens, coalesce(cache_write_tokens, 0) AS cache_write_tokens, output_tokens, cost_nano FROM model_calls ORDER BY id',
      );
    const ledger = calls();
    expect(ledger).toHaveLength(2);
    expect(ledger[0]).toMatchObject({ cache_read_tokens: 50 });

    const verb = async (...args: string[]) => {
      const done = await cli([...args, '-o', root]);
      expect(done.code, `${args.join(' ')}: ${done.stderr}${done.stdout}`).toBe(0);
      return done.stdout;
    };
    await verb('verify', id);
    await verb('report', id);
    expect(await verb('show', id)).not.toContain(CANARY);
    const folder = join(root, id);
    const exported = trajectoryIn(folder);
    for (const hidden of [CANARY, '"native"']) expect(exported).not.toContain(hidden);
    expect(JSON.parse(exported).messages).toHaveLength(6);

    // The file alone is enough for a replay, and for another results folder.
    expect((await cli(['replay', join(folder, 'trajectories'), '--check'])).stdout).toContain(
      'equal    a__a-1 6/6 messages',
    );
    const imported = await cli([
      'import',
      folder,
      '--subset',
      bench.dataset,
      '--run-id',
      `${id}-taken`,
      '-o',
      root,
    ]);
    expect(imported.code, imported.stderr).toBe(0);
    expect(bench.preds(`${id}-taken`)).toEqual(bench.preds(id));
    expect(calls().slice(2)).toEqual(ledger);

    const recording = join(root, 'recording.gz');
    await verb('export', id, 'recording', '--to', recording);
    for (const [name, source] of [
      ['again', id],
      ['from-file', recording],
    ]) {
      const again = await bench.run(`${id}-${name}`, [
        '-m',
        `replay:${source}`,
        '-c',
        'agent.protocol=tool-call',
      ]);
      expect(again.code, again.stderr).toBe(0);
      expect(again.stderr).not.toContain('another way');
      expect(bench.preds(`${id}-${name}`)).toEqual(bench.preds(id));
      await verb('verify', `${id}-${name}`);
    }
    expect(server.requests).toHaveLength(2);
    const replayed = trajectoryIn(join(root, `${id}-again`));
    expect(replayed).not.toContain('"native"');
    expect((await cli(['replay', join(root, `${id}-again`, 'trajectories'), '--check'])).stdout).toContain(
      'equal    a__a-1 6/6 messages',
    );
  });
});
