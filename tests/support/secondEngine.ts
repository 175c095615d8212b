// A second, real Docker engine with its own small disk (an ext4 file on a loop device). Needs root and dockerd; gone after the test.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';

export interface SecondEngine {
  readonly docker: Docker;
  readonly socket: string;
  /** Where its disk is mounted. */
  readonly disk: string;
  /** Ends the engine at once, as a crash would; `close` is still to be called. */
  kill(): Promise<void>;
  /** Ends it as a person would, with its containers; `start` brings it up again with the same images. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

const DOCKERD = ['/usr/sbin/dockerd', '/usr/bin/dockerd'].find((path) => existsSync(path));

export function secondEngineAvailable(): boolean {
  if (process.getuid?.() === 0 && DOCKERD && existsSync('/dev/loop-control')) return true;
  if (process.env.SWEBATCH_REQUIRE_DOCKER === '1')
    throw new Error('a second engine needs root, dockerd and loop devices');
  return false;
}

/** Processes whose command line names our temporary folder: the shims and containerd of this engine, and no other's. */
function processesNaming(dir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => readQuietly(`/proc/${name}/cmdline`).includes(`${dir}/`))
    .map(Number);
}
const childrenOf = (pid: number): number[] =>
  readQuietly(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended meanwhile
  }
}
function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}

function spawnEngine(argv: readonly string[]) {
  const child = spawn(DOCKERD!, argv, { stdio: 'ignore' });
  return { child, ended: new Promise<void>((done) => child.once('exit', () => done())) };
}

export async function startSecondEngine(diskMb: number): Promise<SecondEngine> {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-engine-'));
  const image = join(dir, 'disk.img');
  const disk = join(dir, 'disk');
  const socket = join(dir, 'docker.sock');
  writeFileSync(image, '');
  truncateSync(image, diskMb * 2 ** 20);
  mkdirSync(disk);
  execFileSync('mkfs.ext4', ['-q', '-m', '0', image]);
  execFileSync('mount', ['-o', 'loop', image, disk]);
  // `--bridge none` would make it delete docker0 of the engine that is already here: a bridge of its own, without address, instead.
  const bridge = `swb${process.pid % 100_000}${dir.slice(-4)}`;
  execFileSync('ip', ['link', 'add', bridge, 'type', 'bridge']);
  const space = `swebatch-test-${process.pid}-${dir.slice(-6)}`;
  const argv = [
    ...['--data-root', join(disk, 'docker'), '--exec-root', join(dir, 'exec'), '--pidfile', join(dir, 'pid')],
    ...['-H', `unix://${socket}`, '--log-level', 'error'],
    ...['--bridge', bridge, '--iptables=false', '--ip6tables=false'],
    ...['--containerd-namespace', space, '--containerd-plugins-namespace', `${space}-p`],
  ];
  let { child, ended } = spawnEngine(argv);
  const docker = new Docker({ socketPath: socket });
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await ended;
    // A killed engine leaves its containers running under their shims.
    for (const pid of processesNaming(dir))
      for (const victim of [...childrenOf(pid), pid]) endProcess(victim);
    // What its containers and its own containerd may still hold.
    const mounts = readFileSync('/proc/mounts', 'utf8');
    const inside = mounts
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '')
      .filter((path) => path.startsWith(dir));
    for (const path of inside.toReversed()) execFileSync('umount', ['-l', path]);
    execFileSync('ip', ['link', 'delete', bridge]);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await untilUp(docker, child);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    docker,
    socket,
    disk,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
    async start() {
      ({ child, ended } = spawnEngine(argv));
      await untilUp(docker, child);
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    close,
  };
}

async function untilUp(docker: Docker, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the second dockerd ended with ${child.exitCode}`);
    const up = await docker.ping().then(
      () => true,
      () => false,
    );
    if (up) return;
    if (Date.now() > deadline) throw new Error('the second dockerd did not come up within 2 min');
    await new Promise((done) => setTimeout(done, 100));
  }
}
