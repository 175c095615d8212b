// Side by side with mini-swe-agent 2.4.6: the same instances, image, replies and fake server over HTTP, alternating, with what each took.
//   npm run bench:peer -- [--instances 8] [--steps 100] [--rounds 2] [--json]
// The peer comes from PyPI into a virtual environment in .cache/bench-peer. Processor time is of the program with its children; that of the
// machine counts the engine and the containers too, and whatever else runs: compare it on a quiet machine.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '8' },
    steps: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '2' },
    image: { type: 'string', default: 'swebatch-test/base:1' },
    json: { type: 'boolean', default: false },
  },
});
const ROOT = join(import.meta.dirname, '..', '..');
const INSTANCES = Number(values.instances);
const STEPS = Number(values.steps);
const PEER = 'mini-swe-agent==2.4.6';
const VENV = join(ROOT, '.cache', 'bench-peer');
const MINI = join(VENV, 'bin', 'mini-extra');
const COMMAND = 'echo step';

function installPeer(): void {
  if (existsSync(MINI)) return;
  mkdirSync(VENV, { recursive: true });
  execFileSync('python3', ['-m', 'venv', VENV], { stdio: 'inherit' });
  // The classes of models ask through litellm, and the rows come through datasets.
  execFileSync(join(VENV, 'bin', 'pip'), ['install', '--quiet', PEER, 'datasets'], { stdio: 'inherit' });
}

interface Took {
  readonly wall: number;
  readonly own: number;
  readonly machine: number;
}

/** Busy seconds of all processors, from the kernel's own counters. */
function busySeconds(): number {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.trim().split(/\s+/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = fields;
  return (user + nice + system + irq + softirq) / 100;
}

/** Bash has the processor time of its children when they have ended. */
async function timed(
  command: readonly string[],
  env: Record<string, string>,
  done: () => boolean,
): Promise<Took> {
  const before = { at: performance.now(), busy: busySeconds() };
  const script = '"$@" >/dev/null 2>"$LOG"; code=$?; times; exit $code';
  const log = join(mkdtempSync(join(tmpdir(), 'swebatch-peer-')), 'stderr');
  const child = spawn('bash', ['-c', script, 'bash', ...command], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env, LOG: log },
  });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  if (code !== 0 || !done())
    throw new Error(`${command[0]} ended with ${code}:\n${readFileSync(log, 'utf8').slice(-2000)}`);
  const seconds = [...(said.trim().split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, rest]) => 60 * Number(minutes) + Number(rest),
  );
  return {
    wall: (performance.now() - before.at) / 1000,
    own: seconds.reduce((sum, part) => sum + part, 0),
    machine: busySeconds() - before.busy,
  };
}

function rows(): string {
  const all = Array.from({ length: INSTANCES }, (_, n) => ({
    instance_id: `bench__bench-${n + 1}`,
    image: values.image,
    image_name: values.image,
    base_commit: '0'.repeat(40),
    problem_statement: 'bench',
  }));
  return all.map((row) => JSON.stringify(row)).join('\n');
}

const reply = `THOUGHT: go on\n\n\`\`\`bash\n${COMMAND}\n\`\`\``;
const peerReply = `THOUGHT: go on\n\n\`\`\`mswea_bash_command\n${COMMAND}\n\`\`\``;

async function startServer(dir: string, says: string) {
  const script = join(dir, `script-${says.length}.json`);
  writeFileSync(script, JSON.stringify([says]));
  const main = join(ROOT, 'tests', 'support', 'fakeModelServerMain.ts');
  const child = spawn(process.execPath, [main, '--scripts', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const first = await new Promise<Buffer>((resolve) => child.stdout.once('data', resolve));
  return {
    url: (JSON.parse(first.toString()) as { url: string }).url,
    async requests(): Promise<number> {
      const answer = new Promise<Buffer>((resolve) => child.stdout.once('data', resolve));
      child.stdin.write('\n');
      return (JSON.parse((await answer).toString()) as { requests: number }).requests;
    },
    end: () => void child.stdin.end(),
  };
}

interface Side {
  /** Beside the limits of the agent, which both have. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly command: readonly string[];
  readonly env: Record<string, string>;
  /** Below the folder of its results. */
  readonly predictions: string;
}

const ours = (dir: string, url: string): Side => ({
  config: {
    environment: { memory: '256m', pull: 'never' },
    model: { model_name: 'gpt-4o', base_url: url },
    run: { workers: INSTANCES, breaker: { empty_patches: 0 } },
  },
  command: [
    ...[process.execPath, join(ROOT, 'dist', 'cli', 'bin.js'), 'run'],
    ...['--subset', join(dir, 'data', 'test.jsonl'), '--run-id', 'bench', '--progress', 'none'],
  ],
  env: { OPENAI_API_KEY: 'none' },
  predictions: join('bench', 'preds.json'),
});

const peers = (dir: string, url: string): Side => ({
  config: {
    environment: { cwd: '/', environment_class: 'docker' },
    model: {
      model_name: 'openai/gpt-4o',
      model_class: 'litellm_textbased',
      cost_tracking: 'ignore_errors',
      model_kwargs: { api_base: url, api_key: 'none' },
    },
  },
  command: [
    ...[MINI, 'swebench', '--subset', join(dir, 'data'), '--split', 'test'],
    ...['-w', String(INSTANCES), '-c', 'swebench_backticks.yaml'],
  ],
  env: { MSWEA_CONFIGURED: 'true' },
  predictions: 'preds.json',
});

function take(dir: string, name: string, { config, command, env, predictions }: Side): Promise<Took> {
  // The peer reads files of this name only; JSON is YAML too.
  const [file, out] = [join(dir, `${name}.yaml`), join(dir, name)];
  writeFileSync(file, JSON.stringify({ ...config, agent: { step_limit: STEPS, cost_limit: 0 } }));
  return timed([...command, '-c', file, '-o', out], env, () => existsSync(join(out, predictions)));
}

installPeer();
const dir = mkdtempSync(join(tmpdir(), 'swebatch-peer-'));
mkdirSync(join(dir, 'data'));
writeFileSync(join(dir, 'data', 'test.jsonl'), rows());
const [server, peerServer] = [await startServer(dir, reply), await startServer(dir, peerReply)];
const found: { peer: Took; ours: Took; load: number }[] = [];
try {
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const peer = await take(dir, `peer-${round}`, peers(dir, peerServer.url));
    found.push({
      peer,
      ours: await take(dir, `ours-${round}`, ours(dir, server.url)),
      load: loadavg()[0]!,
    });
  }
  // Whoever made fewer steps was not faster.
  const asked = [await peerServer.requests(), await server.requests()];
  const planned = Number(values.rounds) * INSTANCES * STEPS;
  if (asked.some((count) => count !== planned))
    throw new Error(`${planned} requests were planned; the peer made ${asked[0]}, and ours ${asked[1]}`);
} finally {
  server.end();
  peerServer.end();
  rmSync(dir, { recursive: true, force: true });
}
if (values.json) console.log(JSON.stringify({ instances: INSTANCES, steps: STEPS, rounds: found }));
else {
  const spread = (list: readonly number[], digits = 1) =>
    `${Math.min(...list).toFixed(digits)} to ${Math.max(...list).toFixed(digits)}`;
  const steps = INSTANCES * STEPS;
  console.log(`${INSTANCES} x ${STEPS} steps over HTTP, load ${spread(found.map(({ load }) => load))}`);
  for (const what of ['wall', 'own', 'machine'] as const) {
    const [theirs, own] = [found.map(({ peer }) => peer[what]), found.map((one) => one.ours[what])];
    const ratios = found.map(({ peer, ours: mine }) => peer[what] / mine[what]);
    const perStep = own.map((seconds) => (1000 * seconds) / steps);
    console.log(
      `${what.padEnd(8)} peer ${spread(theirs)} s, ours ${spread(own)} s (${spread(perStep, 2)} ms a step): ${spread(ratios)} times`,
    );
  }
}
