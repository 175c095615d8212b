// How an installed agent ends: by what the gateway decided, then by what the environment saw, never by the words of the program.
import { describe, expect, test } from 'vitest';
import { type AgentConfig, agentConfigSchema } from '../../../src/agent/agentConfig.ts';
import type { AgentCallbacks, AgentParts } from '../../../src/agent/contract.ts';
import type {
  GatewayCall,
  GatewayEnd,
  GatewaySummary,
  SessionSpec,
} from '../../../src/agent/gateway/gateway.ts';
import { commandAgent } from '../../../src/agent/installed/commandAgent.ts';
import { textResult } from '../../../src/agent/loop/protocol.ts';
import { completeEnvironment } from '../../../src/environment/capabilities.ts';
import {
  type CommandResult,
  type Environment,
  EnvironmentError,
  type ExecuteOptions,
} from '../../../src/environment/environment.ts';
import type { CallListener, Model, ModelErrorResponse } from '../../../src/model/model.ts';
import { answeredCall } from '../../support/agents/agentBench.ts';

const model: Model = {
  name: 'm',
  wire: { dialect: 'chat', model: 'm-1', send: () => Promise.reject(new Error('not asked')) },
  query: () => Promise.reject(new Error('not asked')),
  templateVars: () => ({ model_name: 'm' }),
};

interface Played {
  /** What the program does; it gets the session and a signal that kills it. */
  readonly program: (
    session: {
      request: Omit<SessionSpec, 'config'>;
      end: (end: GatewayEnd) => void;
      breakDoor: (error: EnvironmentError) => void;
    },
    options: ExecuteOptions,
  ) => Promise<CommandResult>;
  readonly summary?: Partial<GatewaySummary>;
  readonly config?: Partial<AgentConfig>;
  readonly signal?: AbortSignal;
  readonly callbacks?: AgentCallbacks;
}

async function play({ program, summary, config, signal, callbacks }: Played) {
  const ended = Promise.withResolvers<GatewayEnd>();
  const broken = Promise.withResolvers<EnvironmentError>();
  const files: Record<string, string> = {};
  const happened: string[] = [];
  let lines: [string, ExecuteOptions][] = [];
  let request: Omit<SessionSpec, 'config'> | undefined;
  const environment = completeEnvironment({
    info: { kind: 'test', transport: 'local', history: 'skipped', notes: [] },
    execute: async (command, options = {}) => {
      lines = [...lines, [command, options]];
      return program({ request: request!, end: ended.resolve, breakDoor: broken.resolve }, options);
    },
    templateVars: () => ({ cwd: '/testbed' }),
    capturePatch: () => Promise.reject(new Error('not asked')),
    putFile: async (path, content) => {
      files[path] = String(content);
    },
    getFile: () => Promise.reject(new Error('not asked')),
    listen: async (port) => ({
      ...{ port, broken: broken.promise },
      close: async () => void happened.push('door closed'),
    }),
    close: async () => {},
  });
  const parts: AgentParts = {
    ...{ instanceId: 'a__a-1', model, environment, signal },
    ...(callbacks && { callbacks }),
    config: agentConfigSchema.parse({
      agent_class: 'command',
      command: 'solve {{task}} {{prompt_file}}',
      ...config,
    }),
    gateway: {
      open: (asked) => {
        request = asked;
        const used: GatewaySummary = {
          ...{
            steps: 2,
            costNano: 7,
            spentNano: 7,
            tokens: 0,
            calls: 2,
            asked: true,
            lastFailure: null,
            refusal: null,
          },
          ...summary,
        };
        return {
          ...{ key: 'sk-attempt', model: 'm-1', dialect: 'chat', handle: () => {}, ended: ended.promise },
          state: () => used,
          refuse: (why) => void happened.push(`refused: ${why}`),
          close: async () => {
            happened.push('session closed');
            return used;
          },
        };
      },
    },
  };
  const run = commandAgent.create(parts).run("it's broken");
  return { run, files, happened, line: () => lines };
}

const says =
  (output: string, exitCode = 0) =>
  async () =>
    textResult(output, exitCode);
/** As the channel does: a signal ends the command, and its reason is thrown. */
const untilKilled = (options: ExecuteOptions): Promise<CommandResult> =>
  new Promise((_, reject) => {
    const { signal } = options;
    if (signal!.aborted) reject(signal!.reason);
    signal!.addEventListener('abort', () => reject(signal!.reason));
  });

const failure = (kind: 'context' | 'auth'): ModelErrorResponse => ({
  ...{ success: false, error: 'CONTEXT_LENGTH_EXCEEDED', message: 'too long' },
  metadata: { kind },
});

describe('an installed agent', () => {
  test('gets its prompt as a file, the gateway in variables and its task as one word', async () => {
    const { run, files, line, happened } = await play({ program: says('done') });
    await run;
    expect(files['/opt/swebatch-agent/prompt.txt']).toMatch(/<issue>\nit's broken\n<\/issue>/);
    const [[command, options]] = line() as [[string, ExecuteOptions]];
    expect(command).toContain(`solve 'Resolve this issue in the repository at /testbed:`);
    expect(command).toContain(`it'\\''s broken`);
    expect(command).toMatch(/ \/opt\/swebatch-agent\/prompt\.txt$/m);
    expect(options.env).toEqual({
      OPENAI_BASE_URL: 'http://127.0.0.1:13131/v1',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:13131',
      GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:13131',
      OPENAI_API_KEY: 'sk-attempt',
      ANTHROPIC_API_KEY: 'sk-attempt',
      GEMINI_API_KEY: 'sk-attempt',
    });
    expect(happened).toEqual(['session closed', 'door closed']);
  });

  test('that ends by itself has submitted, whatever its exit code and words are; both are evidence', async () => {
    const { run } = await play({ program: says('FATAL: rate limit 429, out of budget, timed out', 3) });
    expect(await run).toMatchObject({
      exitStatus: 'Submitted',
      ...{ steps: 2, costNano: 7, submission: '' },
      evidence: { exit_code: 3, output_end: 'FATAL: rate limit 429, out of budget, timed out' },
    });
  });

  test('that fails before it asks a model did not start', async () => {
    const { run, happened } = await play({
      program: says('no such file', 127),
      summary: { calls: 0, asked: false },
    });
    await expect(run).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringMatching(/127.*no such file/),
    });
    expect(happened).toEqual(['session closed', 'door closed']);
  });

  test('that asks no model and ends with 0 did not start, unless its configuration says that it may', async () => {
    const program = says('\x1b[33mkimi-cli is no longer maintained\x1b[0m\nsee its page\n');
    const { run } = await play({ program, summary: { calls: 0, asked: false } });
    await expect(run).rejects.toMatchObject({
      code: 'start_failed',
      message:
        'the agent ended with exit code 0 and never asked a model (where that is right, set agent.model_optional: true): kimi-cli is no longer maintained\nsee its page',
      evidence: { exit_code: 0, output_end: expect.stringContaining('no longer maintained') },
    });
    const config = { model_optional: true };
    const { run: allowed } = await play({ program, config, summary: { calls: 0, asked: false } });
    expect(await allowed).toMatchObject({ exitStatus: 'Submitted' });
    // It may leave well without an answer, and not badly.
    const { run: failed } = await play({
      program: says('x', 1),
      config,
      summary: { calls: 0, asked: false },
    });
    await expect(failed).rejects.toMatchObject({ code: 'start_failed' });
  });

  test('that counted tokens alone did not start either', async () => {
    const { run } = await play({ program: says('bye'), summary: { calls: 3, asked: false, steps: 0 } });
    await expect(run).rejects.toMatchObject({ code: 'start_failed' });
  });

  test('tells the line with the error first, and whole lines', async () => {
    const output = `Traceback (most recent call last):\n${'  File "/x/y.py", line 1, in <module>\n'.repeat(40)}ModuleNotFoundError: No module named 'kimi'\nsentry: flushing`;
    const { run } = await play({ program: says(output, 1), summary: { calls: 0, asked: false } });
    await expect(run).rejects.toMatchObject({
      message: expect.stringMatching(
        /before it asked a model: ModuleNotFoundError: No module named 'kimi'\nFile "\/x\/y\.py", line 1, in <module>\n(?:.+\n)*sentry: flushing$/,
      ),
    });
    const { run: long } = await play({ program: says(`${'a line of ten\n'.repeat(1000)}the end`) });
    const { evidence } = await long;
    expect(evidence?.output_end).toMatch(/^(a line of ten\n){280,}the end$/);
  });

  test('whose every request was refused did not start, whatever its exit code is', async () => {
    const refusal = 'the model "gpt-9" is not this arm\'s';
    const { run } = await play({ program: says('all done'), summary: { calls: 0, asked: false, refusal } });
    await expect(run).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining(refusal),
    });
    const { run: other } = await play({ program: says('all done'), summary: { refusal } });
    expect(await other).toMatchObject({ exitStatus: 'Submitted' });
  });

  test('ends at a limit of the gateway, also when it leaves with 0 and says that all is well', async () => {
    const { run } = await play({
      program: async ({ end }) => {
        end({ kind: 'limit', limit: 'cost', message: 'the limit of $3 was reached' });
        return textResult('success');
      },
    });
    expect(await run).toMatchObject({ exitStatus: 'LimitsExceeded', limit: 'cost' });
  });

  test('ends with the failure of the model that the gateway gave up on', async () => {
    const { run } = await play({
      program: async ({ end }) => {
        end({ kind: 'model', failure: failure('auth') });
        return textResult('', 1);
      },
    });
    expect(await run).toMatchObject({ exitStatus: 'ModelFailed', error: { metadata: { kind: 'auth' } } });
  });

  test('ends with the failure that the program was last told', async () => {
    const { run } = await play({ program: says('', 0), summary: { lastFailure: failure('context') } });
    expect(await run).toMatchObject({ exitStatus: 'ModelFailed', error: { metadata: { kind: 'context' } } });
  });

  test('throws what a listener of the gateway threw', async () => {
    const stop = new Error('the budget of the run is spent');
    const { run } = await play({
      program: async ({ end }) => {
        end({ kind: 'thrown', error: stop });
        return textResult('', 1);
      },
    });
    await expect(run).rejects.toBe(stop);
  });

  test('at its wall-clock limit was killed by the environment', async () => {
    const { run, line } = await play({
      program: async () => ({ ...textResult('still here', -1, true), exceptionInfo: 'timed out after 5 s' }),
      config: { wall_time_limit_seconds: 5 },
    });
    expect(await run).toMatchObject({
      exitStatus: 'TimeExceeded',
      limit: 'wall_time',
      evidence: { output_end: 'still here' },
    });
    expect(line()[0]![1].timeoutS).toBe(5);
  });

  test('that stays after its limit is killed', async () => {
    const { run } = await play({
      program: ({ end }, options) => {
        end({ kind: 'limit', limit: 'steps', message: 'enough' });
        return untilKilled(options);
      },
    });
    expect(await run).toMatchObject({ limit: 'steps', evidence: { killed: true } });
  });

  test('that stays after the relay died is killed, and the death is what counts', async () => {
    const death = new EnvironmentError('died', 'the relay is gone', { sub: 'relay' });
    const { run, happened } = await play({
      program: ({ breakDoor }, options) => {
        breakDoor(death);
        return untilKilled(options);
      },
    });
    await expect(run).rejects.toBe(death);
    expect(happened).toEqual(['session closed', 'door closed']);
  });

  test('is stopped by the signal of the run, and the session and the door are closed', async () => {
    const stop = new AbortController();
    const { run, happened } = await play({
      program: (_, options) => {
        stop.abort(new Error('stopped'));
        return untilKilled(options);
      },
      signal: stop.signal,
    });
    await expect(run).rejects.toThrow('stopped');
    expect(happened).toEqual(['session closed', 'door closed']);
  });

  test('in an environment without a door cannot work', async () => {
    const agent = commandAgent.create({
      ...{ instanceId: 'a', model, config: agentConfigSchema.parse({}) },
      environment: { templateVars: () => ({}) } as unknown as Environment,
    });
    expect(await agent.run('x')).toMatchObject({
      error: { code: 'CONFIG_ERROR', metadata: { kind: 'config' } },
    });
  });
});

describe('the record of an installed agent', () => {
  const call = (index: number, newMessages: GatewayCall['newMessages'], thread = 'main'): GatewayCall =>
    answeredCall({ index, newMessages, thread });
  const runs = (id: string, command: unknown, name = 'bash') => ({
    ...{ role: 'assistant' as const, content: null },
    tool_calls: [
      { id, type: 'function' as const, function: { name, arguments: JSON.stringify({ command }) } },
    ],
  });

  test('messages come in order, a command with the answer that the program sent for it', async () => {
    const seen: string[] = [];
    const callbacks: AgentCallbacks = {
      onMessage: (_, message, index) =>
        void seen.push(
          `${index} ${message.role} ${String(message.extra?.thread ?? '')}${'raw_output' in (message.extra ?? {}) ? '+' : ''}`,
        ),
      onCommand: (_, { step, index, command, result }) =>
        void seen.push(`ran ${step}.${index} ${command} -> ${result.output} (${result.exitCode})`),
      onProgramCall: (_, { call: { index }, label, firstMessage, replyMessage }) =>
        void seen.push(`call ${index} ${label}: ${firstMessage} to ${replyMessage}`),
    };
    const { run } = await play({
      program: async ({ request }) => {
        request.onCall!(
          call(0, [{ role: 'system', content: 's' }, { role: 'user', content: 'u' }, runs('1', 'ls')]),
        );
        request.onCall!(call(1, [{ role: 'user', content: 'a sub-agent' }], 'sub-1'));
        request.onCall!(
          call(2, [{ role: 'tool', tool_call_id: '1', content: 'a b' }, runs('2', ['rm', '-rf', 'x'])]),
        );
        return textResult('');
      },
      callbacks,
    });
    await run;
    expect(seen).toEqual([
      '0 system ',
      '1 user ',
      '2 assistant ',
      'call 0 null: 0 to 2',
      '3 user sub-1',
      'call 1 subagent:sub-1: 3 to null',
      'ran 1.0 ls -> a b (null)',
      '4 tool +',
      '5 assistant ',
      'call 2 null: 4 to 5',
      'ran 3.0 rm -rf x ->  (null)',
      '6 exit ',
    ]);
  });

  test('commands in flight are told also where the attempt breaks off', async () => {
    const seen: string[] = [];
    const death = new EnvironmentError('died', 'the relay is gone', { sub: 'relay' });
    const { run } = await play({
      program: ({ request, breakDoor }, options) => {
        request.onCall!(call(0, [{ role: 'user', content: 'u' }, runs('1', 'make all')]));
        breakDoor(death);
        return untilKilled(options);
      },
      callbacks: {
        onCommand(_, { command, result }) {
          seen.push(`${command}: ${result.exceptionInfo}`);
          throw new Error('the record is broken too');
        },
      },
    });
    await expect(run).rejects.toBe(death);
    expect(seen).toEqual(['make all: the program did not tell what came of it']);
  });

  test('calls that are out at a time are kept apart, and the phase is the program’s when none is out', async () => {
    const seen: string[] = [];
    const callbacks: AgentCallbacks = {
      onCallWanted: async (ctx) => void seen.push(`wanted ${ctx.call}`),
      onCallBegan: (ctx) => void seen.push(`began ${ctx.call}`),
      onCallEnded: (ctx) => void seen.push(`ended ${ctx.call}`),
      onStep: (ctx) => void seen.push(`step ${ctx.step}`),
      onPhase: (_, phase) => void seen.push(phase),
    };
    const began = { try: 0, modelAsked: 'm', startedAt: 0, estimateNano: null };
    const { run } = await play({
      program: async ({ request }) => {
        const one = request.listener({ index: 0, step: 1, label: { kind: 'main' } });
        const two = request.listener({ index: 1, step: 2, label: { kind: 'main' } });
        await one.wanted?.(null, undefined, () => {});
        one.began(began);
        one.phase?.('model');
        two.began(began);
        one.ended({ try: 0 } as never);
        two.ended({ try: 0 } as never);
        return textResult('');
      },
      callbacks,
    });
    await run;
    expect(seen).toEqual([
      ...['program', 'wanted 0', 'step 1', 'began 0', 'model'],
      ...['step 2', 'began 1', 'ended 0', 'ended 1', 'program'],
    ]);
  });

  test('while one call is out the phase is the model’s, whatever the others wait for', async () => {
    const seen: string[] = [];
    const began = { try: 0, modelAsked: 'm', startedAt: 0, estimateNano: null };
    const { run } = await play({
      program: async ({ request }) => {
        const [one, two] = [0, 1].map((index) =>
          request.listener({ index, step: 1, label: { kind: 'main' } }),
        ) as [CallListener, CallListener];
        void one.began(began);
        one.phase?.('model');
        two.phase?.('rate_wait');
        one.ended({ try: 0 } as never);
        one.phase?.('backoff');
        void two.began(began);
        two.phase?.('model');
        void one.began({ ...began, try: 1 });
        one.phase?.('model');
        two.ended({ try: 0 } as never);
        one.ended({ try: 1 } as never);
        return textResult('');
      },
      callbacks: { onPhase: (_, phase) => void seen.push(phase) },
    });
    await run;
    expect(seen).toEqual(['program', 'model', 'rate_wait', 'backoff', 'model', 'model', 'program']);
  });
});
