/**
 * What one command costs by transport, side by side: a local `bash -c` spawn, swebatch's own path, an Engine API exec and the
 * `docker exec` CLI, at 1, 8 and 32 at a time. Every transport runs the same command, each time with a fresh nonce whose echo is
 * checked together with the exit code. `npm run bench:command -- --json` prints JSON alone on stdout; people's text goes to stderr.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type Docker from 'dockerode';
import { createDockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import { createDemux } from '../../src/environment/docker/startProcess.ts';
import type { Environment } from '../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { atMost, barLine } from './bars.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    image: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    samples: { type: 'string', default: '200' },
  },
});

/** Wall time of one measurement: 4 transports x 3 widths must stay under 50 s together with the containers. */
const WINDOW_MS = Number(flags.seconds) * 1000;
const MAX_SAMPLES_ONE = Number(flags.samples);
const WIDTHS = [1, 8, 32] as const;
const IMAGES = ['swebatch-test/base:1', 'swebatch-demo/base:1', 'swebatch-envtest/base:1'];
const EXIT_CODE = 7;
const say = (text: string) => process.stderr.write(`${text}\n`);

type TransportName = 'local-spawn' | 'swebatch' | 'engine-api-exec' | 'docker-exec-cli';
/** Runs one command in container `slot` and resolves to its output and exit code. */
type Run = (slot: number, command: string) => Promise<{ output: string; code: number }>;

interface Measured {
  readonly transport: TransportName;
  readonly concurrency: number;
  readonly count: number;
  readonly per_second: number;
  readonly p50_ms: number;
  readonly p90_ms: number;
  readonly p99_ms: number;
  /** CPU of the whole machine over the window, idle share taken off, per command. */
  readonly machine_cpu_ms: number;
  readonly samples_ms: readonly number[];
}

function spawned(file: string, args: readonly string[]): Promise<{ output: string; code: number }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (data: Buffer) => {
      output += data.toString();
    });
    child.stderr.on('data', (data: Buffer) => {
      output += data.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ output, code: code ?? -1 }));
  });
}

async function engineExec(container: Docker.Container, command: string) {
  const exec = await container.exec({
    Cmd: ['bash', '-c', command],
    AttachStdout: true,
    AttachStderr: true,
  });
  const stream = await exec.start({ hijack: true, stdin: false });
  let output = '';
  stream.on(
    'data',
    createDemux((_type, data) => {
      output += data.toString();
    }),
  );
  await new Promise<void>((resolve) => stream.on('end', resolve).on('close', resolve));
  const { ExitCode } = await exec.inspect();
  return { output, code: ExitCode ?? -1 };
}

/** Busy time of all processors in ms, from the kernel's own counters. */
function busyMs(): number {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.trim().split(/\s+/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = fields;
  return (user + nice + system + irq + softirq) * 10;
}

const round = (value: number, digits = 3) => Number(value.toFixed(digits));
const quantile = (sorted: readonly number[], q: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;

async function once(run: Run, slot: number): Promise<number> {
  const nonce = randomBytes(8).toString('hex');
  const began = performance.now();
  const { output, code } = await run(slot, `echo ${nonce}; exit ${EXIT_CODE}`);
  const took = performance.now() - began;
  if (output.trim() !== nonce || code !== EXIT_CODE)
    throw new Error(
      `wrong answer: expected ${nonce} and ${EXIT_CODE}, got ${JSON.stringify(output)} and ${code}`,
    );
  return took;
}

async function measure(transport: TransportName, run: Run, concurrency: number): Promise<Measured> {
  for (let warm = 0; warm < 3; warm += 1) await once(run, 0);
  const samples: number[] = [];
  const cpuBefore = busyMs();
  const began = performance.now();
  const end = began + WINDOW_MS;
  const limit = concurrency === 1 ? MAX_SAMPLES_ONE : Number.POSITIVE_INFINITY;
  await Promise.all(
    Array.from({ length: concurrency }, async (_, slot) => {
      while (performance.now() < end && samples.length < limit) samples.push(await once(run, slot));
    }),
  );
  const wallMs = performance.now() - began;
  const cpu = busyMs() - cpuBefore;
  const sorted = [...samples].sort((a, b) => a - b);
  return {
    transport,
    concurrency,
    count: samples.length,
    per_second: round((samples.length / wallMs) * 1000, 1),
    p50_ms: round(quantile(sorted, 0.5)),
    p90_ms: round(quantile(sorted, 0.9)),
    p99_ms: round(quantile(sorted, 0.99)),
    machine_cpu_ms: round(cpu / samples.length, 2),
    samples_ms: samples.map((s) => round(s)),
  };
}

async function pickImage(docker: Docker): Promise<string> {
  for (const image of flags.image ? [flags.image] : IMAGES) {
    const found = await docker
      .getImage(image)
      .inspect()
      .then(
        () => true,
        () => false,
      );
    if (found) return image;
  }
  throw new Error('no image to measure in: build one with scripts/buildDemoImages.ts, or pass --image NAME');
}

/** Starts the widest number of containers; those that started are in the list even when one could not. */
async function startAll(
  factory: ReturnType<typeof createDockerFactory>,
  image: string,
  environments: Environment[],
): Promise<void> {
  const width = Math.max(...WIDTHS);
  const started = await Promise.allSettled(
    Array.from({ length: width }, (_, slot) =>
      factory.start({ instanceId: `bench-${slot}`, image, owner: currentOwner('bench', `${slot}`) }),
    ),
  );
  for (const one of started) if (one.status === 'fulfilled') environments.push(one.value);
  const failed = started.find((one) => one.status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function measureAll(transports: Record<TransportName, Run>) {
  const names = Object.keys(transports) as TransportName[];
  const results: Record<(typeof WIDTHS)[number], Measured[]> = { 1: [], 8: [], 32: [] };
  for (const concurrency of WIDTHS)
    for (const name of names) {
      const measured = await measure(name, transports[name], concurrency);
      results[concurrency].push(measured);
      say(
        `${String(concurrency).padStart(3)} at a time  ${name.padEnd(16)} p50 ${measured.p50_ms.toFixed(2).padStart(8)} ms  p99 ${measured.p99_ms.toFixed(2).padStart(8)} ms  ${measured.per_second.toFixed(0).padStart(5)}/s  ${measured.machine_cpu_ms.toFixed(2).padStart(6)} ms CPU`,
      );
    }
  return results;
}

async function main(): Promise<void> {
  const config = environmentConfigSchema.parse({
    cwd: '/',
    memory: '512m',
    pull: 'never',
    seal_history: false,
    container_timeout: '10m',
  });
  const factory = createDockerFactory(config, { snapshot: false, onWarning: say });
  const image = await pickImage(factory.docker);
  const environments: Environment[] = [];
  try {
    say(`image ${image}; ${cpus().length} CPUs; starting ${Math.max(...WIDTHS)} containers`);
    await startAll(factory, image, environments);
    const containers = environments.map((e) => factory.docker.getContainer(e.info.containerId ?? ''));

    const transports: Record<TransportName, Run> = {
      'local-spawn': (_slot, command) => spawned('bash', ['-c', command]),
      swebatch: async (slot, command) => {
        const { output, exitCode } = await environments[slot]!.execute(command);
        return { output, code: exitCode };
      },
      'engine-api-exec': (slot, command) => engineExec(containers[slot]!, command),
      'docker-exec-cli': (slot, command) =>
        spawned('docker', ['exec', containers[slot]!.id, 'bash', '-c', command]),
    };
    const results = await measureAll(transports);
    const p50 = (name: TransportName) =>
      results[1].find((one) => one.transport === name)?.p50_ms ?? Number.NaN;
    const bars = [
      atMost(
        `one at a time, swebatch p50 in ms, twice a local spawn (${p50('local-spawn').toFixed(2)} ms)`,
        p50('swebatch'),
        2 * p50('local-spawn'),
      ),
    ];
    for (const bar of bars) say(barLine(bar));
    const report = {
      bars,
      image,
      transport_used: environments[0]?.info.transport,
      cpus: cpus().length,
      command: `echo NONCE; exit ${EXIT_CODE}`,
      one_at_a_time: results[1],
      eight_at_a_time: results[8],
      thirty_two_at_a_time: results[32],
    };
    if (flags.json) process.stdout.write(`${JSON.stringify(report)}\n`);
  } finally {
    await Promise.all(environments.map((environment) => environment.close()));
    await factory.close();
  }
}

await main();
