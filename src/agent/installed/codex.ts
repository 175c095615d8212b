/** Codex: the Responses API, a provider of its own in its configuration. The built-in provider would try WebSockets for seconds. */
import type { McpServer } from '../../base/mcpServer.ts';
import { installedAgent } from './installedAgent.ts';

/** JSON strings are strings of TOML. */
const toml = (text: string): string => JSON.stringify(text);

const serverTable = (server: McpServer): string[] => [
  `[mcp_servers.${toml(server.name)}]`,
  ...(server.transport === 'stdio'
    ? [`command = ${toml(server.command)}`, `args = [${server.args.map(toml).join(', ')}]`]
    : [`url = ${toml(server.url)}`]),
];

const PLATFORM = '$(ls -d vendor/*-linux-musl)';

export const codex = installedAgent({
  dialect: 'responses',
  commandTools: ['exec_command', 'write_stdin', 'shell_command', 'shell', 'local_shell'],
  mcp: ['stdio', 'streamable-http'],
  // Instructions of its user come before those of the repository (codex-rs, project_doc.rs).
  finds: (home) => ({ instructions: `${home}/AGENTS.md`, skills: `${home}/skills` }),
  exitCode: /Process exited with code (\d+)/,
  packages: (version, arch) => ({
    licence: 'Apache-2.0',
    variants: [
      {
        libc: null,
        packages: [{ name: '@openai/codex', version: `${version}-linux-${arch}`, folder: 'codex' }],
      },
    ],
  }),
  launch: ({ origin, key, model, home, promptFile, programs, mcpServers }) => ({
    files: {
      'config.toml': [
        `model = ${toml(model)}`,
        'model_provider = "gateway"',
        // A tool of the provider's would leave the container.
        'web_search = "disabled"',
        'check_for_update_on_startup = false',
        '[history]',
        'persistence = "none"',
        '[analytics]',
        'enabled = false',
        '[model_providers.gateway]',
        'name = "gateway"',
        `base_url = ${toml(`${origin}/v1`)}`,
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
        // The gateway waits and tries again; what it answers is final. Only a stream that breaks in mid-answer is Codex's to ask for again.
        'request_max_retries = 0',
        'stream_max_retries = 5',
        'stream_idle_timeout_ms = 3600000',
        ...mcpServers.flatMap(serverTable),
        '',
      ].join('\n'),
    },
    env: { CODEX_HOME: home, OPENAI_API_KEY: key },
    command: `exec "$(cd ${programs}/codex && echo ${programs}/codex/${PLATFORM})"/bin/codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json - <${promptFile}`,
  }),
});
