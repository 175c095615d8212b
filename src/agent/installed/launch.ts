/** The description of each installed agent: how it is started, and which of its tools run commands. */
import { recordOf } from '../../base/isRecord.ts';
import type { McpServer } from '../../base/mcpServer.ts';
import type { DialectName } from '../../model/dialects/dialects.ts';
import type { AgentConfig } from '../agentConfig.ts';
import type { AgentKind } from '../contract.ts';
import type { PlacedEquipment } from '../equipment.ts';

/** The facts that are known when the program is about to start. */
export interface LaunchFacts {
  /** The gateway's address, seen from the container: http://127.0.0.1:13131 */
  readonly origin: string;
  /** Names the attempt, and is worth nothing elsewhere. */
  readonly key: string;
  readonly model: string;
  /** The folder of the launch's `files`, for the program to read. */
  readonly folder: string;
  /** A folder of the program's own with a copy of them, which it may write. */
  readonly home: string;
  /** The prompt as a file. */
  readonly promptFile: string;
  readonly prompt: string;
  /** The folder of its packages, see PROGRAM_FOLDER. */
  readonly programs: string;
  readonly config: AgentConfig;
  /** Servers of tools that the task and its arm give it; only such as `mcp` has. */
  readonly mcpServers: readonly McpServer[];
  /** Instructions and skills of its arm, where they are. */
  readonly equipment?: PlacedEquipment | undefined;
}

export interface Launch {
  /** The files' texts by their names in `folder` and `home`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** A line for a shell in the work tree. The line reads nothing from the terminal. */
  readonly command: string;
}

/** An installed agent's description; `installedAgent` makes a class of agents of it. */
export interface InstalledProgram
  extends Pick<AgentKind, 'mcp' | 'packages' | 'missing' | 'takesProgram' | 'equipment'> {
  /** The dialect that it speaks; null: any. */
  readonly dialect: DialectName | null;
  /** The agent's tools that run a command; any: each that is called with one. */
  readonly commandTools: readonly string[] | 'any';
  /** The exit code in such a tool's answer; one group with the number. */
  readonly exitCode?: RegExp;
  /** Where only failed commands have a code: any other answer is a success, unless this is in it. */
  readonly endUnknown?: RegExp;
  /** The output in such a tool's answer; default: all of it. */
  readonly outputOf?: (answer: string) => string;
  /** Where the agent looks for instructions and skills of its user, below its own folder. */
  readonly finds?: (home: string) => { readonly instructions: string; readonly skills: string };
  /** Facts in the output about the agent's own work, for the record; they decide nothing. */
  readonly says?: (output: string) => Readonly<Record<string, unknown>>;
  launch(facts: LaunchFacts): Launch;
}

/** The object in a text of JSON; an empty one where it holds none. */
export function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return recordOf(JSON.parse(text));
  } catch {
    return {};
  }
}

/** A configuration's entries for servers, by name; nothing where there is no server, so that the configuration stays as it was. */
export const mcpEntries = <Entry>(
  key: string,
  servers: readonly McpServer[],
  entryOf: (server: McpServer) => Entry,
): Readonly<Record<string, Readonly<Record<string, Entry>>>> =>
  servers.length === 0
    ? {}
    : { [key]: Object.fromEntries(servers.map((server) => [server.name, entryOf(server)])) };
