// The sidecar of a pod without a cluster: its exec is a process of this machine, behind the messages of the API. The relay is the real one.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../../scripts/buildPrograms.ts';
import { createTurnstile } from '../../../src/base/async/room.ts';
import { EnvironmentError } from '../../../src/environment/environment.ts';
import type { Cluster, ExecAddress } from '../../../src/environment/kubernetes/cluster.ts';
import { podRelay } from '../../../src/environment/kubernetes/podRelay.ts';
import { createProgramSpools } from '../../../src/environment/programs/packageTar.ts';
import type { Program } from '../../../src/environment/programs/program.ts';
import { packageAt } from '../../support/agents/packages.ts';
import { freePort } from '../relay/freePort.ts';

buildPrograms();

const status = (code: number) =>
  code === 0
    ? { status: 'Success' }
    : { status: 'Failure', details: { causes: [{ reason: 'ExitCode', message: String(code) }] } };

/** Runs what is asked for here, with the folders of the sidecar below `root`. */
function fakePod(root: string) {
  const asked: ExecAddress[] = [];
  const children: ChildProcess[] = [];
  const cuts: (() => void)[] = [];
  let newest: ((stream: number, data: Buffer) => void) | undefined;
  const exec: Cluster['exec'] = async (address, onData) => {
    asked.push(address);
    newest = onData;
    const [file, ...argv] = address.argv.map((word) => word.replaceAll(/^\/opt\//g, `${root}/`));
    const child = spawn(file!, argv, { stdio: 'pipe' });
    children.push(child);
    const closed = Promise.withResolvers<void>();
    let open = true;
    const pass = (stream: number) => (data: Buffer) => void (open && onData(stream, data));
    child.stdout.on('data', pass(1));
    child.stderr.on('data', pass(2));
    child.stdin.on('error', () => undefined);
    child.on('close', (code, signal) => {
      if (open) onData(3, Buffer.from(JSON.stringify(status(signal ? 137 : (code ?? 0)))));
      closed.resolve();
    });
    const cut = () => {
      open = false;
      child.stdin.end();
      closed.resolve();
    };
    cuts.push(cut);
    return {
      send(data, left) {
        expect(data[0]).toBe(0);
        child.stdin.write(data.subarray(1), () => left?.());
      },
      pause: () => undefined,
      resume: () => undefined,
      terminate: cut,
      onClose: (then) => void closed.promise.then(then),
    };
  };
  const forge = (text: string) => newest?.(1, Buffer.from(text));
  return { exec, asked, children, cuts, forge };
}

const spools = createProgramSpools();
const pods: ReturnType<typeof fakePod>[] = [];
afterEach(async () => {
  for (const { children } of pods.splice(0)) for (const child of children) child.kill('SIGKILL');
  await spools.close();
});

function sidecar(
  program?: Program,
  death: () => Promise<EnvironmentError | undefined> = async () => undefined,
) {
  const root = mkdtempSync(join(tmpdir(), 'sidecar-'));
  mkdirSync(join(root, 'swebatch-program'));
  const pod = fakePod(root);
  pods.push(pod);
  const shared = {
    ...{ cluster: { exec: pod.exec }, options: { relay: true, program } },
    ...{ filling: createTurnstile(1), spools },
    // A server that is always there.
    watch: { mark: () => 0, back: async () => undefined, awaySince: () => false },
  } as never;
  return { root, pod, relay: podRelay(shared, 'p', death) };
}

const echo = (connection: Duplex): void => {
  connection.on('error', () => undefined);
  connection.pipe(connection);
};

describe('a port in a pod', () => {
  test('carries connections, comes from the sidecar alone, and ends with the door', async () => {
    const { relay, pod } = sidecar();
    const port = await freePort();
    const door = await relay.listen(port, echo);
    const socket = connect(port, '127.0.0.1');
    socket.end('x'.repeat(500_000));
    expect((await buffer(socket)).length).toBe(500_000);
    expect(new Set(pod.asked.map(({ container }) => container))).toEqual(new Set(['swebatch-relay']));
    let told = false;
    void door.broken.then(() => {
      told = true;
    });
    const ended = once(pod.children.at(-1)!, 'exit');
    await door.close();
    await ended;
    expect(told).toBe(false);
  });

  test('that is taken is refused with the words of the relay', async () => {
    const { relay } = sidecar();
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    await expect(relay.listen(port, echo)).rejects.toMatchObject({
      ...{ code: 'start_failed', evidence: { said: expect.stringContaining('cannot be opened') } },
    });
    taken.close();
  });

  test('whose relay is killed is lost by the relay, once, and its connections with it', async () => {
    const { relay, pod } = sidecar();
    const port = await freePort();
    let carried: Duplex | undefined;
    const door = await relay.listen(port, (connection) => {
      carried = connection.on('error', () => undefined);
    });
    connect(port, '127.0.0.1').on('error', () => undefined);
    await expect.poll(() => carried).toBeDefined();
    pod.children.at(-1)!.kill('SIGKILL');
    expect(await door.broken).toMatchObject({
      ...{ name: 'EnvironmentError', code: 'died', sub: 'relay', fromWithin: false },
      evidence: { relay: 'p', exit_code: 137 },
    });
    await expect.poll(() => carried!.destroyed).toBe(true);
  });

  test('whose stream breaks without a word of the kubelet is lost by the cluster, or as the pod ended', async () => {
    const first = sidecar();
    const door = await first.relay.listen(await freePort(), echo);
    first.pod.cuts.at(-1)!();
    expect(await door.broken).toMatchObject({ code: 'died', sub: 'daemon_lost' });

    const deleted = new EnvironmentError('died', 'pod p was deleted', { sub: 'killed' });
    const second = sidecar(undefined, async () => deleted);
    const other = await second.relay.listen(await freePort(), echo);
    second.pod.cuts.at(-1)!();
    expect(await other.broken).toBe(deleted);
  });

  test('whose relay says what is no frame is given up', async () => {
    const { relay, pod } = sidecar();
    const door = await relay.listen(await freePort(), echo);
    pod.forge('this is no frame at all');
    expect(await door.broken).toMatchObject({ code: 'died', sub: 'relay' });
  });
});

describe('a program in a pod', () => {
  const dir = mkdtempSync(join(tmpdir(), 'pod-program-'));
  const program = async (name: string, variant: object = { libc: null }): Promise<Program> => ({
    name: `${name}@1`,
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    variants: [
      {
        ...(variant as { libc: null }),
        packages: [
          await packageAt(join(dir, `${name}.tgz`), [
            { name: 'package/bin/hello', content: '#!/bin/sh\necho hello\n', mode: 0o755 },
            { name: 'package/lib/big', content: 'x'.repeat(2_000_000) },
          ]),
        ],
      },
    ],
  });

  test('is there as a whole once it has come, and can be run', async () => {
    const { relay, root } = sidecar(await program('whole'));
    const coming = relay.bringProgram()!;
    await coming.begun;
    await coming.done;
    const folder = join(root, 'swebatch-program', 'demo');
    expect(readFileSync(join(folder, 'lib', 'big'), 'utf8')).toBe('x'.repeat(2_000_000));
    expect(statSync(join(folder, 'bin', 'hello')).mode & 0o777).toBe(0o755);
  });

  test('that is for another machine, or was changed since, is refused and nothing of it comes', async () => {
    const foreign = { ...(await program('foreign')), architecture: 's390x' };
    const elsewhere = sidecar(foreign);
    await expect(elsewhere.relay.bringProgram()!.done).rejects.toMatchObject({
      ...{ code: 'start_failed', sub: 'wrong_env' },
      message: expect.stringContaining('added for s390x'),
    });
    const changed = await program('changed');
    await packageAt(changed.variants[0]!.packages[0]!.file, [
      { name: 'package/bin/hello', content: 'other' },
    ]);
    const { relay, root } = sidecar(changed);
    await expect(relay.bringProgram()!.done).rejects.toMatchObject({
      ...{ code: 'start_failed', message: expect.stringContaining('is not the package that was added') },
    });
    expect(readdirSync(join(root, 'swebatch-program'))).toEqual([]);
  });

  test('stops with the signal, by its reason, also in the middle', async () => {
    const stop = new AbortController();
    const { relay, root, pod } = sidecar(await program('stopped'));
    const coming = relay.bringProgram(stop.signal)!;
    await coming.begun;
    stop.abort(new Error('the run was stopped'));
    await expect(coming.done).rejects.toThrow('the run was stopped');
    expect(pod.asked.length).toBeLessThanOrEqual(2);
    expect(existsSync(join(root, 'swebatch-relay'))).toBe(false);
  });

  test('is none where the agent is in the image', () => {
    expect(sidecar().relay.bringProgram()).toBeUndefined();
  });
});
