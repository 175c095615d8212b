/**
 * What a command costs over a long line: swebatch, a line of 80 ms and 1 % loss, an engine. `npm run bench:link [-- --json]`.
 * The line is a TCP proxy, for kernels without `netem`: each direction takes half of the round trip, and a lost segment holds up all that
 * follows it for as long as Linux takes to send it again. Fails when the mean of a command is more than 1.3 round trips.
 */
import { randomBytes } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { createDockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import type { Environment } from '../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { atMost, barLine } from './bars.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    image: { type: 'string', default: 'swebatch-demo/base:1' },
    socket: { type: 'string', default: '/var/run/docker.sock' },
    'round-trip': { type: 'string', default: '80' },
    loss: { type: 'string', default: '0.01' },
    commands: { type: 'string', default: '300' },
  },
});
const ROUND_TRIP_MS = Number(flags['round-trip']);
const LOSS = Number(flags.loss);
const BAR = 1.3;
const SEGMENT = 1448;
/** The timer of a segment that nothing follows: a round trip and at least 200 ms. Others are missed after a round trip. */
const LONE_MS = ROUND_TRIP_MS + 200;

const say = (text: string) => process.stderr.write(`${text}\n`);

interface Line {
  readonly port: number;
  readonly lost: () => number;
  close(): void;
}

/** One direction of one connection: in order, late, and held up by what is lost. */
function carry(from: Socket, to: Socket, loss: number, onLost: () => void): void {
  const queue: { readonly at: number; readonly chunk: Buffer | null }[] = [];
  const deliver = () => {
    for (let next = queue[0]; next && next.at <= performance.now(); next = queue[0]) {
      queue.shift();
      if (next.chunk) to.write(next.chunk);
      else to.end();
    }
    if (queue[0]) setTimeout(deliver, Math.max(0, queue[0].at - performance.now()));
  };
  const send = (chunk: Buffer | null, late: number) => {
    const after = performance.now() + ROUND_TRIP_MS / 2 + late;
    queue.push({ at: Math.max(after, queue.at(-1)?.at ?? 0), chunk });
    if (queue.length === 1) setTimeout(deliver, after - performance.now());
  };
  from.on('data', (chunk: Buffer) => {
    const segments = Math.ceil(chunk.length / SEGMENT);
    let late = 0;
    for (let i = 0; i < segments; i++) {
      if (Math.random() >= loss) continue;
      onLost();
      late = Math.max(late, segments - i > 3 ? ROUND_TRIP_MS : LONE_MS);
    }
    send(chunk, late);
  });
  from.on('end', () => send(null, 0));
  from.on('error', () => to.destroy());
}

async function openLine(loss: number): Promise<Line> {
  let lost = 0;
  const onLost = () => {
    lost += 1;
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: flags.socket, allowHalfOpen: true });
    client.setNoDelay(true);
    carry(client, engine, loss, onLost);
    carry(engine, client, loss, onLost);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the line has no port');
  return { port: address.port, lost: () => lost, close: () => void server.close() };
}

async function once(environment: Environment): Promise<number> {
  const nonce = randomBytes(8).toString('hex');
  const began = performance.now();
  const { output, exitCode } = await environment.execute(`echo ${nonce}; exit 7`);
  const took = performance.now() - began;
  if (output.trim() !== nonce || exitCode !== 7) throw new Error(`wrong answer: ${exitCode} ${output}`);
  return took;
}

const config = environmentConfigSchema.parse({
  ...{ cwd: '/', memory: '512m', pull: 'never', seal_history: false, container_timeout: '10m' },
});

/** Times of all commands, in ms, `width` containers side by side. */
async function measure(docker: object, width: number, commands: number): Promise<number[]> {
  const factory = createDockerFactory(config, { docker, snapshot: false, onWarning: say });
  const starts = Array.from({ length: width }, (_, slot) =>
    factory.start({
      instanceId: `link-${slot}`,
      image: flags.image,
      owner: currentOwner('bench', `${slot}`),
    }),
  );
  const settled = await Promise.allSettled(starts);
  try {
    const environments = await Promise.all(starts);
    const took: number[] = [];
    await Promise.all(
      environments.map(async (environment) => {
        for (let i = 0; i < 3; i++) await once(environment);
        for (let i = 0; i < commands / width; i++) took.push(await once(environment));
      }),
    );
    return took.toSorted((a, b) => a - b);
  } finally {
    await Promise.allSettled(
      settled.map((one) => (one.status === 'fulfilled' ? one.value.close() : undefined)),
    );
    await factory.close();
  }
}

const round = (value: number) => Number(value.toFixed(2));
function summary(name: string, took: readonly number[]) {
  const mean = took.reduce((sum, ms) => sum + ms, 0) / took.length;
  const at = (q: number) => took[Math.min(took.length - 1, Math.floor(took.length * q))]!;
  const line = {
    name,
    count: took.length,
    mean_ms: mean,
    p50_ms: at(0.5),
    p90_ms: at(0.9),
    p99_ms: at(0.99),
  };
  const trips = (ms: number) => `${ms.toFixed(0)} ms (${(ms / ROUND_TRIP_MS).toFixed(2)})`;
  say(
    `${name.padEnd(40)} mean ${trips(mean)}  p50 ${trips(at(0.5))}  p90 ${trips(at(0.9))}  p99 ${trips(at(0.99))}`,
  );
  return Object.fromEntries(Object.entries(line).map(([k, v]) => [k, typeof v === 'number' ? round(v) : v]));
}

const commands = Number(flags.commands);
const near = summary('no line, 1 at a time', await measure({ socketPath: flags.socket }, 1, commands));
const results = [near];
const bars = [];
for (const loss of [0, LOSS]) {
  const line = await openLine(loss);
  for (const width of [1, 8]) {
    const before = line.lost();
    const took = await measure({ host: '127.0.0.1', port: line.port }, width, commands);
    const name = `${ROUND_TRIP_MS} ms, ${loss * 100} % lost, ${width} at a time`;
    const found = summary(name, took);
    results.push({ ...found, lost: line.lost() - before });
    bars.push(atMost(`${name}: mean in round trips`, Number(found.mean_ms) / ROUND_TRIP_MS, BAR));
  }
  line.close();
}
for (const bar of bars) say(barLine(bar));
if (flags.json) process.stdout.write(`${JSON.stringify({ results, bars })}\n`);
process.exitCode = bars.every(({ pass }) => pass) ? 0 : 1;
