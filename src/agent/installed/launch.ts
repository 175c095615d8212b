/** What each installed agent says about itself: how it is started, and which of its tools run commands. */
import { recordOf } from '../../base/isRecord.ts';
import type { McpServer } from '../../base/mcpServer.ts';
import type { DialectName } from '../../model/dialects/dialects.ts';
import type { AgentConfig } from '../agentConfig.ts';
import type { AgentKind } from '../contract.ts';
import type { PlacedEquipment } from '../equipment.ts';

/** What is known when the program is about to start. */
export interface LaunchFacts {
  /** Where the gateway is, seen from the container: http://127.0.0.1:13131 */
  readonly origin: string;
  /** Names the attempt, and is worth nothing elsewhere. */
  readonly key: string;
  readonly model: string;
  /** Where `files` of the launch are, for it to read. */
  readonly folder: string;
  /** A folder of the program's own with a copy of them, which it may write. */
  readonly home: string;
  /** The prompt as a file. */
  readonly promptFile: string;
  readonly prompt: string;
  /** Where its packages are, see PROGRAM_FOLDER. */
  readonly programs: string;
  readonly config: AgentConfig;
  /** Servers of tools that the task and its arm give it; only such as `mcp` has. */
  readonly mcpServers: readonly McpServer[];
  /** Instructions and skills of its arm, where they are. */
  readonly equipment?: PlacedEquipment | undefined;
}

export interface Launch {
  /** By their names in `folder` and `home`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** A line for a shell in the work tree. It reads nothing from the terminal. */
  readonly command: string;
}

/** What each installed agent says about itself; `installedAgent` makes a class of agents of it. */
export interface InstalledProgram
  extends Pick<AgentKind, 'mcp' | 'packages' | 'missing' | 'takesProgram' | 'equipment'> {
  /** What it speaks; null: any of them. */
  readonly dialect: DialectName | null;
  /** Its tools that run a command; any: each that is called with one. */
  readonly commandTools: readonly string[] | 'any';
  /** What such a tool says of the end of a command; one group with the number. */
  readonly exitCode?: RegExp;
  /** It tells the code of a command that failed only: any other answer is a success, unless this is in it. */
  readonly endUnknown?: RegExp;
  /** The output in what such a tool answers; default: all of it. */
  readonly outputOf?: (answer: string) => string;
  /** Where it looks for instructions and skills of its user, with the folder of its own. */
  readonly finds?: (home: string) => { readonly instructions: string; readonly skills: string };
  /** What its output says of its own work, for the record; it decides nothing. */
  readonly says?: (output: string) => Readonly<Record<string, unknown>>;
  launch(facts: LaunchFacts): Launch;
}

/** What a text of JSON holds; nothing where it is no object. */
export function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return recordOf(JSON.parse(text));
  } catch {
    return {};
  }
}

/** What a configuration says of each server, by its name; nothing where there is none, so that it stays as it was without servers. */
export const mcpEntries = <Entry>(
  key: string,
  servers: readonly McpServer[],
  entryOf: (server: McpServer) => Entry,
): Readonly<Record<string, Readonly<Record<string, Entry>>>> =>
  servers.length === 0
    ? {}
    : { [key]: Object.fromEntries(servers.map((server) => [server.name, entryOf(server)])) };
