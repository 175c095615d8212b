// Runs of installed agents over demo instances: the real program of each from npm, a provider that plays turns, official grading.

import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { GatewayCall } from '../../../src/agent/gateway/gateway.ts';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import { sqlarUncompress } from '../../../src/store/longText.ts';
import { type CliResult, cli, machineNetwork, REPO, type RunningCli, startCli, tempDir } from '../cli.ts';
import type { SeenRequest, Turn } from './playedProvider.ts';

const DATASET = join(REPO, 'datasets', 'demo', 'demo.jsonl');
/** The provider's key, in pieces where a command looks for it. */
export const REAL_KEY = 'sk-real-9f3c7b1a5e';

export interface AgentUnderTest {
  readonly agent: 'codex' | 'claude-code' | 'opencode' | 'gemini-cli';
  readonly version: string;
  readonly dialect: string;
  /** A call of its tool for shell commands. */
  readonly runs: (command: string) => Turn;
  /** It takes more than five minutes to read 1 GB from a command: it draws all of it on a terminal of its own. */
  readonly readsSlowly?: boolean;
}

const withDescription =
  (tool: string) =>
  (command: string): Turn => ({ tool, args: { command, description: 'step' } });

export const AGENTS: readonly AgentUnderTest[] = [
  {
    agent: 'codex',
    version: '0.169.0',
    dialect: 'responses',
    runs: (cmd) => ({ tool: 'exec_command', args: { cmd } }),
  },
  { agent: 'opencode', version: '1.18.33', dialect: 'chat', runs: withDescription('bash') },
  {
    agent: 'gemini-cli',
    version: '0.61.0',
    dialect: 'gemini',
    runs: withDescription('run_shell_command'),
    readsSlowly: true,
  },
  { agent: 'claude-code', version: '2.1.330', dialect: 'messages', runs: withDescription('Bash') },
];

/** Claude Code is under commercial terms: a person says that it may be run. */
const mayRun = ({ agent }: AgentUnderTest): boolean =>
  agent !== 'claude-code' || process.env.SWEBATCH_TEST_CLAUDE_CODE === '1';
export const agentsTested = (): AgentUnderTest[] => AGENTS.filter(mayRun);

const added = new Map<string, Promise<CliResult>>();

/** Fetched into the person's own cache, once on a machine. Null when it is there; else why not. */
export async function addedFromNpm(one: AgentUnderTest): Promise<string | null> {
  if (!mayRun(one)) return 'Claude Code is under commercial terms: SWEBATCH_TEST_CLAUDE_CODE=1 runs it';
  const { agent, version } = one;
  const spec = `${agent}@${version}`;
  const adding = added.get(spec) ?? addOnce(spec);
  added.set(spec, adding);
  const { code, stderr } = await adding;
  if (code === 0) return null;
  if (process.env.SWEBATCH_REQUIRE_DOCKER === '1')
    throw new Error(`${spec} is required for these tests and cannot be had: ${stderr}`);
  return `${spec} cannot be had from npm: ${stderr}`;
}

async function addOnce(spec: string): Promise<CliResult> {
  const here = await cli(['agents', 'verify', spec]);
  return here.code === 0 ? here : cli(['agents', 'add', spec], { env: machineNetwork() });
}

export interface DemoRow {
  readonly instance_id: string;
  readonly patch: string;
  readonly problem_statement: string;
}

const demoRow = (id: string): DemoRow =>
  readFileSync(DATASET, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as DemoRow)
    .find((row) => row.instance_id === id)!;

/** A command that applies the instance's gold patch. */
export const solve = (id: string): string => `git apply <<'PATCH'\n${demoRow(id).patch}\nPATCH`;

/** The turns of whichever instance a request is about. */
export function byInstance(turns: Readonly<Record<string, readonly Turn[]>>) {
  const known = Object.entries(turns).map(([id, played]) => {
    const [title] = demoRow(id).problem_statement.split('\n');
    return { title: JSON.stringify(title).slice(1, -1), played };
  });
  return (seen: SeenRequest, results: number): Turn | undefined => {
    const text = JSON.stringify(seen.body);
    return known.find(({ title }) => text.includes(title))?.played[results];
  };
}

export interface AgentBench {
  readonly out: string;
  /** Of the run: containers of tests beside it carry others. */
  readonly id: string;
  args(...more: string[]): string[];
  run(...more: string[]): Promise<CliResult>;
  start(...more: string[]): RunningCli;
  resume(...more: string[]): Promise<CliResult>;
  clean(...more: string[]): Promise<CliResult>;
  /** The same run again, answered from the record; without a name one that ends in -again. */
  replay(name?: string): Promise<CliResult>;
  query<T>(sql: string): T[];
}

export interface AgentBenchOptions {
  readonly ids: readonly string[];
  /** Default: the demo dataset. */
  readonly subset?: string;
  readonly url: string;
  readonly dialect: string;
  readonly agent: Readonly<Record<string, unknown>>;
  readonly run?: Readonly<Record<string, unknown>>;
  /** Tries of a call after its first one. */
  readonly retries?: number;
  readonly gateway?: Readonly<Record<string, unknown>>;
  readonly modelKwargs?: Readonly<Record<string, unknown>>;
  readonly grading?: boolean;
  readonly arms?: readonly Readonly<Record<string, unknown>>[];
  readonly environment?: Readonly<Record<string, unknown>>;
  /** Variables of the program that runs. */
  readonly variables?: Readonly<Record<string, string>>;
}

export function agentBench(options: AgentBenchOptions): AgentBench {
  const out = tempDir('agents-');
  const id = `agents-${randomBytes(4).toString('hex')}`;
  const config = join(out, 'agents.yaml');
  const { dialect, url, agent, run, grading = false, retries = 2 } = options;
  const base = dialect === 'messages' || dialect === 'gemini' ? url : `${url}/v1`;
  writeFileSync(
    config,
    JSON.stringify({
      agent: { cost_limit: 0, ...agent },
      environment: { memory: '2g', pull: 'never', ...options.environment },
      model: {
        ...{ model_name: 'fake-1', base_url: base, dialect, api_key_env: 'FAKE_KEY' },
        prices: { input: 1, output: 2 },
        ...(options.modelKwargs && { model_kwargs: options.modelKwargs }),
        retry: { base_delay_ms: 1, max_delay_ms: 5, max_retries: retries },
      },
      run: { breaker: { consecutive: 0, fraction: 0, empty_patches: 0 }, retry: { attempts: 1 }, ...run },
      grading: { enabled: grading },
      ...(options.gateway && { gateway: options.gateway }),
      ...(options.arms && { arms: options.arms }),
    }),
  );
  const env = { FAKE_KEY: REAL_KEY, ...options.variables };
  const filter = `^(${options.ids.join('|')})$`;
  const argsOf = (name: string, ...more: string[]) => [
    'run',
    '--subset',
    options.subset ?? DATASET,
    '--filter',
    filter,
    '-c',
    config,
    '-o',
    out,
    '--run-id',
    name,
    ...more,
  ];
  const args = (...more: string[]) => argsOf(id, ...more);
  return {
    ...{ out, id, args },
    run: (...more) => cli(args(...more), { env }),
    start: (...more) => startCli(args(...more), { env }),
    replay: (name = `${id}-again`) =>
      cli(argsOf(name, '-m', `replay:${id}`), { env: { ...options.variables } }),
    resume: (...more) => cli(['resume', id, '-o', out, ...more], { env }),
    clean: (...more) => cli(['clean', '-o', out, ...more], { env }),
    query<T>(sql: string) {
      const db = new Database(join(out, 'swebatch.db'), { readonly: true });
      db.function('sqlar_uncompress', sqlarUncompress);
      try {
        return db.prepare(sql).all() as T[];
      } finally {
        db.close();
      }
    },
  };
}

// A call that the gateway answered, as the record hears of it, with as much of it as a test cares for.

interface CallUnderTest {
  readonly index?: number;
  readonly thread?: string;
  readonly dialect?: DialectName;
  /** The body that went out. */
  readonly sent?: unknown;
  /** What the program got. */
  readonly got?: string;
  readonly newMessages?: GatewayCall['newMessages'];
}

export function answeredCall(call: CallUnderTest): GatewayCall {
  const { index = 0, thread = 'main', dialect = 'chat', sent = {}, got = '{}', newMessages = [] } = call;
  const last = newMessages.at(-1);
  return {
    ...{ index, step: index + 1, thread, newMessages, startedAt: 1000 * index, endedAt: 1000 * index + 500 },
    label: thread === 'main' ? { kind: 'main' } : { kind: 'subagent', id: thread },
    reply:
      last?.role === 'assistant'
        ? {
            ...{ message: last, content: '', toolCalls: [], finishReason: null, modelId: null },
            ...{ usage: null, costNano: null, raw: null },
          }
        : null,
    ...{ dialect, modelAsked: 'm-1', model: 'm-1', operation: 'generate', streamed: false },
    ...{ status: 200, request: sent, sent: Buffer.from(JSON.stringify(sent)), stripped: [] },
    ...{ response: null, failure: null, translated: null },
    answer: { end: 'whole', status: 200, headers: {}, bytes: Buffer.from(got) },
  };
}
