/**
 * Any program that speaks the Agent Client Protocol (version 1, agentclientprotocol.com) over its standard streams. A client of ours runs
 * beside it in the container: one session, one prompt; permissions by policy, a cancel before the wall time is over. What the program says of
 * itself (calls of tools, plan, reason to stop) is evidence; what counts is what the gateway saw.
 */
import { readFileSync } from 'node:fs';
import { shellWord } from '../../base/text/shellWord.ts';
import { NODE } from './addedProgram.ts';
import { commandAgent, ownLine } from './commandAgent.ts';
import { installedAgent } from './installedAgent.ts';
import { objectOf } from './launch.ts';

const CLIENT = readFileSync(new URL('acpClient.mjs', import.meta.url), 'utf8');

/** Before the program is killed it may end its turn, and write what it has. */
const CANCEL_BEFORE_S = 10;

/** The line that our client wrote last. */
export function acpSummary(output: string): Readonly<Record<string, unknown>> {
  const line = output.split('\n').findLast((one) => one.startsWith('{"acp":'));
  return line === undefined ? {} : objectOf(line);
}

export const acpAgent = installedAgent({
  ...ownLine('acp', 'gemini --acp'),
  says: acpSummary,
  launch(facts) {
    const { env, command } = commandAgent.launch(facts);
    const { promptFile, folder, config } = facts;
    const limit = config.wall_time_limit_seconds;
    const cancel = limit > 0 ? Math.max(limit - CANCEL_BEFORE_S, limit / 2) : 0;
    const client = `${folder}/acpClient.mjs`;
    return {
      files: { 'acpClient.mjs': CLIENT },
      env: {
        ...env,
        SWEBATCH_ACP_PERMISSIONS: config.permissions ?? 'allow',
        SWEBATCH_ACP_CANCEL_S: String(cancel),
      },
      // The Node that came with the program, or the image's.
      command: `node=${NODE}; [ -x "$node" ] || node=node\nexec "$node" ${shellWord(client)} ${shellWord(promptFile)} ${shellWord(command)}`,
    };
  },
});
