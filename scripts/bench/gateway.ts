// What a model call costs more through relay and gateway than straight to the provider: the same client, the same 400 KB request, the same
// streamed answer, in turns. Then as many attempts at once as there are slots.
//   npm run bench:gateway [-- --rounds 6 --slots 64]
// It needs Docker, the test image (npm run setup) and the relay (node scripts/buildPrograms.ts).
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs, promisify } from 'node:util';
import { gatewayConfigSchema } from '../../src/agent/gateway/gatewayConfig.ts';
import { createGateway } from '../../src/agent/gateway/httpGateway.ts';
import { createDockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import type { Environment } from '../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { buildPrograms } from '../buildPrograms.ts';
import { atMost, type Bar, barLine } from './bars.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '6' }, slots: { type: 'string', default: '64' } },
});
const rounds = Number(values.rounds);
const slots = Number(values.slots);

const REQUEST_BYTES = 400_000;
const EVENTS = 200;
const BAR_MS = 20;
/** Calls of one client process, of which the first compile it and grow its buffers. An agent lives for hundreds. */
const CALLS = 20;
const WARM_UP = 12;
const PORT = 13131;

/** The client: it sends the request several times over one connection and prints how long each answer took to its last byte. */
const CLIENT = `
const [url, key, times] = process.argv.slice(2);
const text = 'x'.repeat(${REQUEST_BYTES});
const took = [];
for (let n = 0; n < Number(times); n += 1) {
  const body = JSON.stringify({ model: 'm-1', stream: true, messages: [{ role: 'user', content: n + key + Math.random() + text }] });
  const start = performance.now();
  const answer = await fetch(url, { method: 'POST', headers: { authorization: 'Bearer ' + key, 'content-type': 'application/json' }, body });
  const got = await answer.text();
  if (!got.endsWith('data: [DONE]\\n\\n')) throw new Error(answer.status + ' ' + got.slice(0, 300));
  took.push(performance.now() - start);
}
console.log(JSON.stringify(took));
`;

/** The request is read to its end, then events come as fast as they are taken. */
async function startProvider(): Promise<{ url: string; close(): void }> {
  const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
  const part = event({ id: 'c', model: 'm-1', choices: [{ index: 0, delta: { content: 'some words ' } }] });
  const last = event({
    id: 'c',
    model: 'm-1',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100_000, completion_tokens: EVENTS },
  });
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let n = 0; n < EVENTS; n += 1) response.write(part);
      response.end(`${last}data: [DONE]\n\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => server.close(),
  };
}

const run = promisify(execFile);

/** The value below which this share of the samples lies. On a machine with other work, only the lower ones tell what the way itself costs. */
const share = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * part)]!;
const median = (values: readonly number[]): number => share(values, 0.5);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const provider = await startProvider();
const models = await createModelFactory(
  modelConfigSchema.parse({ model_name: 'm-1', base_url: provider.url, dialect: 'chat', prices: 'free' }),
  { apiKey: 'real' },
);
const gateway = createGateway();
const factory = createDockerFactory(
  environmentConfigSchema.parse({ pull: 'never', network: 'none', seal_history: false, memory: '512m' }),
  { snapshot: false },
);
const opened: Environment[] = [];
let rows = 0;

type Client = (times: number) => Promise<number[]>;

async function direct(times: number): Promise<number[]> {
  const args = [
    '--input-type=module',
    '-e',
    CLIENT,
    'client',
    `${provider.url}/chat/completions`,
    'key',
    String(times),
  ];
  const { stdout } = await run(process.execPath, args);
  return JSON.parse(stdout) as number[];
}

/** A container with its relay and its session; what it gives runs the client inside. */
async function openSlot(n: number): Promise<Client> {
  const environment = await factory.start({
    instanceId: `bench__gateway-${n}`,
    image: 'swebatch-test/base:1',
    owner: currentOwner('bench-gateway', `${process.pid}.${n}`),
  });
  opened.push(environment);
  const session = gateway.open({
    attempt: `slot ${n}`,
    model: models.create({ instanceId: `slot-${n}`, epoch: 1 }),
    limits: { steps: 0, costDollars: 0, tokens: 0 },
    config: gatewayConfigSchema.parse({}),
    listener: () => ({
      began: () => undefined,
      ended: ({ state }) => {
        if (state === 'ok') rows += 1;
      },
    }),
  });
  await environment.listen(PORT, session.handle);
  await environment.putFile('/tmp/client.mjs', CLIENT);
  return async (times) => {
    const command = `node /tmp/client.mjs http://127.0.0.1:${PORT}/v1/chat/completions ${session.key} ${times}`;
    const { output, exitCode } = await environment.execute(command, { timeoutS: 600 });
    if (exitCode !== 0) throw new Error(`the client in the container ended with ${exitCode}: ${output}`);
    return JSON.parse(output) as number[];
  };
}

async function sideBySide(through: Client): Promise<Bar> {
  const samples = { direct: [] as number[], gateway: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    samples.direct.push(...(await direct(CALLS)).slice(WARM_UP));
    samples.gateway.push(...(await through(CALLS)).slice(WARM_UP));
  }
  for (const [name, all] of Object.entries(samples)) {
    say(`${name}: ${all.map((ms) => ms.toFixed(1)).join(' ')}`);
    say(`${name}: p10 ${share(all, 0.1).toFixed(1)} ms, p50 ${median(all).toFixed(1)} ms`);
  }
  return atMost(
    'milliseconds more than a direct call, p50',
    median(samples.gateway) - median(samples.direct),
    BAR_MS,
  );
}

async function allAtOnce(first: Client): Promise<Bar> {
  const others = await Promise.all(Array.from({ length: slots - 1 }, (_, n) => openSlot(n + 1)));
  const before = rows;
  const start = performance.now();
  const all = (await Promise.all([first, ...others].map((client) => client(2)))).flat();
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  say(`${slots} attempts at once: ${all.length} answers in ${seconds} s, p50 ${median(all).toFixed(0)} ms`);
  return atMost(`answers missing of ${slots} attempts at once`, slots * 2 - (rows - before), 0);
}

try {
  say(buildPrograms());
  const first = await openSlot(0);
  const bars = [await sideBySide(first), await allAtOnce(first)];
  for (const bar of bars) say(barLine(bar));
  if (bars.some(({ pass }) => !pass)) process.exitCode = 1;
} finally {
  await Promise.all(opened.map((environment) => environment.close()));
  await factory.close();
  await gateway.close();
  await models.close();
  provider.close();
}
