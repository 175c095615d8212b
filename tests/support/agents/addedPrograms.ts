// Programs that nobody prepared: where they come from, how they are started, and how their tool for commands is called. docs/agents.md has
// the same lines as recipes.
import { expect } from 'vitest';
import { type CliResult, cli, machineNetwork } from '../cli.ts';
import { agentBench, REAL_KEY, solve } from './agentBench.ts';
import { startFakeProvider, type Turn } from './playedProvider.ts';
import { attemptsOf } from './programFaults.ts';

export const ADDED_ID = 'swebatch__tabular-23';

export interface AddedProgram {
  readonly program: string;
  readonly version: string;
  readonly source: string;
  readonly command: string;
  readonly dialect: string;
  readonly runs: (command: string) => Turn;
  /** What ends its work: a command, or a call of a tool of its own; absent: its model says so. */
  readonly last?: string | Turn;
}

const bash = (command: string): Turn => ({ tool: 'bash', args: { command } });

export const ADDED_PROGRAMS: readonly AddedProgram[] = [
  {
    ...{ program: 'qwen', version: '0.24.4', source: 'npm:@qwen-code/qwen-code@0.24.4', dialect: 'chat' },
    command: 'OPENAI_MODEL={{model}} qwen --auth-type openai --yolo -p {{task}}',
    runs: (command) => ({
      tool: 'run_shell_command',
      args: { command, description: 'step', is_background: false },
    }),
  },
  {
    ...{
      program: 'pi',
      version: '1.5.2',
      source: 'npm:@earendil-works/pi-coding-agent@1.5.2',
      dialect: 'chat',
    },
    command: `mkdir -p ~/.pi/agent && printf '{"providers":{"gateway":{"baseUrl":"%s","api":"openai-completions","apiKey":"%s","models":[{"id":"%s"}]}}}' "$OPENAI_BASE_URL" "$OPENAI_API_KEY" {{model}} > ~/.pi/agent/models.json
PI_OFFLINE=1 pi --provider gateway --model {{model}} --no-session -p {{task}}`,
    runs: bash,
  },
  {
    ...{ program: 'mini', version: '2.4.6', source: 'pypi:mini-swe-agent==2.4.6', dialect: 'chat' },
    command:
      'MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors mini --yolo --exit-immediately --model openai/{{model}} --task {{task}}',
    runs: bash,
    last: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT',
  },
  {
    ...{ program: 'cline', version: '3.0.65', source: 'npm:cline@3.0.65', dialect: 'chat' },
    command: `cline auth --provider openai --apikey "$OPENAI_API_KEY" --modelid {{model}} --baseurl "$OPENAI_BASE_URL"
cline --provider openai-compatible --model {{model}} {{task}}`,
    runs: (command) => ({ tool: 'run_commands', args: { commands: [command] } }),
  },
  {
    ...{ program: 'gptme', version: '0.35.1', source: 'pypi:gptme==0.35.1', dialect: 'chat' },
    command: 'gptme --non-interactive --tool-format tool -m local/{{model}} {{task}}',
    runs: (command) => ({ tool: 'shell', args: { command } }),
    last: { tool: 'complete', args: {} },
  },
  {
    ...{ program: 'grok', version: '0.0.34', source: 'npm:@vibe-kit/grok-cli@0.0.34', dialect: 'chat' },
    command:
      'GROK_API_KEY="$OPENAI_API_KEY" GROK_BASE_URL="$OPENAI_BASE_URL" grok --model {{model}} --prompt {{task}}',
    runs: bash,
  },
  {
    ...{ program: 'cn', version: '1.5.47', source: 'npm:@continuedev/cli@1.5.47', dialect: 'chat' },
    command: `mkdir -p ~/.continue && printf '{"name":"gateway","version":"1.0.0","schema":"v1","models":[{"name":"%s","provider":"openai","model":"%s","apiBase":"%s","apiKey":"%s","roles":["chat"],"capabilities":["tool_use"]}]}' {{model}} {{model}} "$OPENAI_BASE_URL" "$OPENAI_API_KEY" > ~/.continue/gateway.yaml
CONTINUE_TELEMETRY_ENABLED=0 CONTINUE_CLI_AUTO_UPDATED=1 cn --config ~/.continue/gateway.yaml --auto -p {{task}}`,
    runs: (command) => ({ tool: 'Bash', args: { command } }),
  },
  {
    ...{
      program: 'kilo',
      version: '7.7.9',
      source: 'npm:@kilocode/cli-linux-x64@7.7.9',
      dialect: 'chat',
    },
    command: `KILO_CONFIG_CONTENT=$(printf '{"autoupdate":false,"share":"disabled","provider":{"gateway":{"npm":"@ai-sdk/openai-compatible","name":"gateway","options":{"baseURL":"%s","apiKey":"%s","includeUsage":true},"models":{"%s":{}}}}}' "$OPENAI_BASE_URL" "$OPENAI_API_KEY" {{model}})
export KILO_CONFIG_CONTENT; kilo run --auto --model gateway/{{model}} {{task}}`,
    runs: (command) => ({ tool: 'bash', args: { command, description: 'step' } }),
  },
];

/** What CI adds from npm: the others take minutes of processor time. */
export const isSmall = ({ program }: AddedProgram): boolean => program === 'gemini';

/** Programs that speak the Agent Client Protocol. */
export const ACP_PROGRAMS: readonly AddedProgram[] = [
  {
    ...ADDED_PROGRAMS[0]!,
    command: 'OPENAI_MODEL={{model}} qwen --auth-type openai --acp',
  },
  {
    ...{ program: 'gemini', version: '0.61.0', source: 'npm:@google/gemini-cli@0.61.0', dialect: 'gemini' },
    command: 'GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true gemini --acp --model {{model}}',
    runs: (command) => ({ tool: 'run_shell_command', args: { command, description: 'step' } }),
  },
];

const adding = new Map<string, Promise<CliResult>>();

/** Null when it is on this machine; else why not. */
export async function addedFromSource({
  program,
  version,
  source,
}: Pick<AddedProgram, 'program' | 'version' | 'source'>): Promise<string | null> {
  const once = async (): Promise<CliResult> => {
    const here = await cli(['agents', 'verify', `${program}@${version}`]);
    return here.code === 0 ? here : cli(['agents', 'add', program, source], { env: machineNetwork() });
  };
  const added = adding.get(source) ?? once();
  adding.set(source, added);
  const { code, stderr } = await added;
  if (code === 0) return null;
  if (process.env.SWEBATCH_REQUIRE_DOCKER === '1')
    throw new Error(`${source} is required for these tests and cannot be had: ${stderr}`);
  return `${source} cannot be had: ${stderr}`;
}

/** One demo instance, by the program in its container. */
export async function solvesOne(
  { program, version, command, dialect, runs, last }: AddedProgram,
  agentClass = 'command',
): Promise<void> {
  const end: Turn = typeof last === 'string' ? runs(last) : (last ?? { say: 'It is done.' });
  await using provider = await startFakeProvider([
    runs('command -v node; ls /sys/class/net; echo looked'),
    ...[runs(solve(ADDED_ID)), end],
  ]);
  const bench = agentBench({
    ...{ ids: [ADDED_ID], url: provider.url, dialect, grading: true },
    agent: { agent_class: agentClass, program, command, wall_time_limit_seconds: 400 },
  });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  const [attempt] = attemptsOf(bench);
  expect(attempt, JSON.stringify(attempt)).toMatchObject({ exit_reason: 'submitted' });
  // By ACP, Qwen Code asks its model for more than its turns.
  if (agentClass === 'acp') expect(attempt!.steps).toBeGreaterThanOrEqual(3);
  else expect(attempt!.steps).toBe(3);
  expect(bench.query('SELECT outcome FROM evaluations')).toEqual([{ outcome: 'resolved' }]);
  if (agentClass === 'acp')
    expect(JSON.parse(attempt!.error_evidence)).toMatchObject({
      acp: { stop_reason: 'end_turn', error: null, calls: expect.any(Number) },
    });
  const [arm] = bench.query<{ config: string }>('SELECT config FROM arms');
  expect(arm!.config).toContain(`"${program}@${version}"`);
  const outputs = bench
    .query<{ output: Buffer }>('SELECT output FROM commands')
    .map(({ output }) => String(output).replaceAll('\\n', '\n'));
  // The image's own Node, not the one beside the program; no network.
  expect(outputs[0]).toContain('/usr/bin/node');
  expect(outputs[0]).toMatch(/(^|\s)lo(\s|$)/);
  expect(outputs[0]).not.toContain('eth0');
  expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain(REAL_KEY);
  expect(bench.query('SELECT id FROM model_calls')).toHaveLength(provider.requests.length);
}
