// A Harbor task of two steps whose image holds an MCP server (stdio): its one tool tells words that stand nowhere else, which the tests want.
import { derivedImage } from '../dockerEnvironment.ts';
import { harborTask } from './harborTask.ts';

/** It is made when the tool is called, so that no search of files finds it. */
const SERVER = `import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "tickets", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "look_up", "description": "Tells the word of a ticket.", "inputSchema": {"type": "object", "properties": {"ticket": {"type": "string"}}, "required": ["ticket"]}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "word-" + asked["params"]["arguments"]["ticket"][::-1] + "-" + str(6 * 7)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
`;

/** The tickets of the steps, and what the tool answers for each. */
export const TICKETS = { first: ['abc', 'word-cba-42'], second: ['xyz', 'word-zyx-42'] } as const;

export async function mcpTask(tasks: string): Promise<void> {
  const image = await derivedImage(
    `mkdir -p /work /srv; cat > /srv/tickets.py <<'SERVER'\n${SERVER}SERVER\n`,
  );
  harborTask(tasks, 'asks-a-server', {
    'task.toml': `[environment]
docker_image = "${image}"
workdir = "/work"
network_mode = "no-network"
[[environment.mcp_servers]]
name = "tickets"
transport = "stdio"
command = "python3"
args = ["/srv/tickets.py"]
${Object.keys(TICKETS)
  .map((name) => `[[steps]]\nname = "${name}"\nmin_reward = 1\n`)
  .join('')}`,
    ...{ 'instruction.md': null, 'tests/test.sh': null },
    ...Object.fromEntries(
      Object.entries(TICKETS).flatMap(([name, [ticket, word]]) => [
        [
          `steps/${name}/instruction.md`,
          `Ask for the word of ticket ${ticket}, and write it to answer.txt.\n`,
        ],
        [
          `steps/${name}/tests/test.sh`,
          `#!/bin/bash\ngrep -qx "${word}" answer.txt && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n`,
        ],
      ]),
    ),
  });
}
