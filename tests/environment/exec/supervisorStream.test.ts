// The host's side of the supervisor against a stream that a test feeds: what nobody waits for must not keep the event loop busy.
import { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { processStarter } from '../../../src/environment/docker/startProcess.ts';
import { createSupervisorTransport } from '../../../src/environment/exec/supervisor.ts';
import type { TransportCommand } from '../../../src/environment/exec/transport.ts';

const frame = (type: 1 | 2, data: Buffer | string) => {
  const body = Buffer.from(data);
  const header = Buffer.alloc(8);
  header[0] = type;
  header.writeUInt32BE(body.length, 4);
  return Buffer.concat([header, body]);
};

test('output of a background process after the end of its command is read slowly', async () => {
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const container = { exec: async () => ({ start: async () => stream }) } as unknown as Docker.Container;
  stream.push(frame(2, '\x1eready 1,7 /tmp/x\x1e'));
  const transport = await createSupervisorTransport(processStarter(container), ['bash', '-c'], 5000);
  let paused = 0;
  const pause = stream.pause.bind(stream);
  stream.pause = () => {
    paused += 1;
    return pause();
  };
  const before = stream.readableLength;
  for (let i = 0; i < 64; i += 1) stream.push(frame(1, Buffer.alloc(64 * 1024, 'y')));
  await new Promise((done) => setImmediate(done));
  // 4 MB came and most of it waits.
  expect(before).toBe(0);
  expect(paused).toBeGreaterThan(0);
  expect(stream.readableLength).toBeGreaterThan(3 * 1024 * 1024);
  transport.close();
});

describe('ends told by a supervisor that a test plays', () => {
  const COMMAND: TransportCommand = { command: 'x', cwd: '/', env: {}, maxOutputBytes: 10_000 };
  const settled = () => new Promise((done) => setImmediate(done));

  async function play() {
    let written = '';
    const stream = new Duplex({
      read: () => undefined,
      write: (chunk, _encoding, done) => {
        written += String(chunk);
        done();
      },
    });
    const container = { exec: async () => ({ start: async () => stream }) } as unknown as Docker.Container;
    stream.push(frame(2, '\x1eready 1,7 /tmp/x\x1e'));
    const transport = await createSupervisorTransport(processStarter(container), ['bash', '-c'], 5000);
    return {
      transport,
      out: (text: string) => stream.push(frame(1, text)),
      tell: (text: string) => stream.push(frame(2, `\x1e${text}\x1e`)),
      async start() {
        written = '';
        const running = await transport.run(COMMAND);
        const [begin = '', end = ''] = /^R\d{9}\w+ (\w+),(\w+) /.exec(written)!.slice(1);
        return { running, begin: `\x1e${begin}\x1e`, fence: `\x1e${end}\x1e`, end };
      },
    };
  }

  test('status and output come apart and in any order', async () => {
    const { start, out, tell } = await play();
    const one = await start();
    tell(`${one.end} 7 0 0 0`);
    out(`of nobody${one.begin}said${one.fence}later`);
    expect(await one.running.ended).toMatchObject({ kind: 'exit', code: 7 });
    expect(one.running.output().output).toBe('said');
    const two = await start();
    out(`later still${two.begin}next${two.fence}`);
    tell(`${two.end} 0 0 0 0`);
    expect(await two.running.ended).toMatchObject({ kind: 'exit', code: 0 });
    expect(two.running.output().output).toBe('next');
  });

  test('an end on stdout is output', async () => {
    const { start, out, tell } = await play();
    const { running, begin, fence, end } = await start();
    out(`${begin}\x1e${end} 0 0 0 0\x1e`);
    out(fence);
    tell(`${end} 7 0 0 0`);
    expect(await running.ended).toMatchObject({ kind: 'exit', code: 7 });
    expect(running.output().output).toBe(`\x1e${end} 0 0 0 0\x1e`);
  });

  test('numbers that are none are told as forged at once', async () => {
    const { start, tell } = await play();
    const { running, end } = await start();
    tell(`${end} NaN 0 0 0`);
    expect(await running.ended).toEqual({ kind: 'forged', evidence: 'the end "NaN 0 0 0"' });
  });

  test('the true end contradicts a lie before it, also when the next command has begun or follows later', async () => {
    for (const when of ['in the next', 'before the next']) {
      const { start, out, tell, transport } = await play();
      const lie = await start();
      tell(`${lie.end} 0 0 0 0`);
      out(`${lie.begin}${lie.fence}`);
      expect(await lie.running.ended).toMatchObject({ code: 0 });
      const truth = () => tell(`${lie.end} 7 0 0 0`);
      let next: Promise<unknown>;
      if (when === 'in the next') {
        const { running } = await start();
        truth();
        next = running.ended;
      } else {
        truth();
        await settled();
        next = (await transport.run(COMMAND)).ended;
      }
      expect(await next, when).toMatchObject({ kind: 'forged', evidence: 'a second end "7 0 0 0"' });
    }
  });

  test('ends of nobody, and frames that never end, change nothing', async () => {
    const { start, out, tell } = await play();
    const { running, begin, fence, end } = await start();
    tell(`${'f'.repeat(24)} 0 0 0 0`);
    tell('x'.repeat(100_000));
    out(`${begin}said${fence}`);
    tell(`${end} 7 0 0 0`);
    expect(await running.ended).toMatchObject({ kind: 'exit', code: 7 });
  });
});
