// `npm run demo:agents`: the built-in loop, Codex and OpenCode on four instances of the bundled dataset, with a model server on this machine
// that plays the demo's replies to each: no key, no cost. The programs are fetched from npm once.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ensureBuild, RESULTS, runsSoFar, swebatch } from './demo/command.mjs';
import { demoRunIds } from './demo/runId.mjs';
import { SetupError, say } from './setup/say.mjs';
import { projectNode, REPO_ROOT, setUp } from './setup/steps.mjs';

const AGENTS = ['codex@0.169.0', 'opencode@1.18.33'];
const ARMS = ['built-in', 'codex', 'opencode'];

/** Resolves when it answers; it says so itself. */
async function startModel() {
  say('\n$ npm run demo:model &');
  const server = spawn(projectNode(), ['scripts/demo/modelServer.ts'], {
    cwd: REPO_ROOT,
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const first = await Promise.race([once(server.stderr, 'data'), once(server, 'exit')]);
  if (server.exitCode !== null || server.signalCode !== null)
    throw new SetupError(`the model server did not start: ${String(first[0])}`);
  say(String(first[0]).trim());
  return server;
}

function work(run) {
  const dataset = ['--subset', 'datasets/demo/demo.jsonl', '--slice', '0:4'];
  const how = ['-c', 'swebench', '-c', 'demo-agents', '-w', '2', '--evaluate'];
  return swebatch(['run', ...dataset, ...how, '-o', RESULTS, '--run-id', run]);
}

async function main() {
  const code = await setUp({ packages: true, images: true });
  if (code !== 0) return code;
  ensureBuild();
  for (const agent of AGENTS) {
    const added = swebatch(['agents', 'add', agent]);
    if (added !== 0) return added;
  }
  const model = await startModel();
  try {
    let [run, fresh] = demoRunIds(runsSoFar(), 'agents');
    let ran = work(run);
    if (ran === 2 && fresh !== undefined) {
      run = fresh;
      ran = work(run);
    }
    if (ran !== 0) return ran;
    return swebatch(['compare', ...ARMS.map((arm) => `${run}/${arm}`), '-o', RESULTS]);
  } finally {
    model.kill();
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(`demo:agents: ${error.message}`);
  process.exitCode = 2;
}
