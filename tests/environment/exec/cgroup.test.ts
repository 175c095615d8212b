// Where the kernel's counters of memory kills and refused forks are read, in both layouts of cgroups: the real scripts over a folder that
// looks like /sys/fs/cgroup. The machine of the other tests has only one of the layouts.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createFenceFinder,
  createFrameReader,
  fenceOf,
  parseEnd,
} from '../../../src/environment/exec/endReport.ts';
import { createCollector } from '../../../src/environment/exec/outputCollector.ts';
import type { CommandEnd } from '../../../src/environment/exec/transport.ts';
import { shellScript } from '../../../src/environment/shellScript.ts';

const SCRIPTS = new URL('../../../src/environment/exec/', import.meta.url).href;
const SUPERVISOR = shellScript('inside/supervisor.sh', SCRIPTS);
const KEEPER = shellScript('inside/keeper.sh', SCRIPTS);
/** Both as in a container, but the keeper is no PID 1. The streams are pipes there, and sockets where node makes them. */
const BOTH = `bash -p -c "$1" swebatch-keeper 0 &
exec bash -p -c "$2" swebatch-supervisor '' $! bash -c > >(exec cat) 2> >(exec cat >&2)`;
const LOADERS = ['keeperLoad', 'supervisorLoad'].map((name) => shellScript(`inside/${name}.sh`, SCRIPTS));
const request = (letter: string, payload: string) =>
  `${letter}${String(Buffer.byteLength(payload)).padStart(9, '0')}${payload}`;
const RUN_COMMAND = shellScript('inside/runCommand.sh', SCRIPTS);
const MARK = '0123456789abcdef01234567';
const BEGIN = '76543210fedcba9876543210';
let folder: string;
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const LAYOUTS = {
  'version 1': {
    memory: 'memory/memory.oom_control',
    memoryText: (kills: number) => `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`,
    pids: 'pids/pids.events',
  },
  'version 2': {
    memory: 'memory.events',
    // `oom` counts how often the limit was met, also without a kill; only `oom_kill` counts.
    memoryText: (kills: number) => `low 0\nhigh 0\nmax 77\noom 9\noom_kill ${kills}\noom_group_kill 5\n`,
    pids: 'pids.events',
  },
} as const;

type Layout = (typeof LAYOUTS)[keyof typeof LAYOUTS];

function cgroups(layout: Layout) {
  folder = mkdtempSync(join(tmpdir(), 'swebatch-cgroup-'));
  const put = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  // Not from zero: earlier kills of the container are not this command's.
  put(layout.memory, layout.memoryText(4));
  put(layout.pids, 'max 10\n');
  /** A command that leaves the counters as if the kernel had raised them. */
  return `printf '${layout.memoryText(6).replaceAll('\n', '\\n')}' >${folder}/${layout.memory}; echo 'max 13' >${folder}/${layout.pids}; echo said; exit 7`;
}

/** Feeds a script and resolves with the end that it tells on stderr, and with its output up to the fence. */
function endOf(
  file: string,
  args: readonly string[],
  stdin = '',
): Promise<{ end: CommandEnd; output: string }> {
  const child = spawn(file, [...args], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const collector = createCollector(10_000);
  const ended = new Promise<{ end: CommandEnd; output: string }>((resolve, reject) => {
    const told = Promise.withResolvers<CommandEnd>();
    const find = createFenceFinder(fenceOf(MARK), collector.push);
    child.stdout.on('data', (chunk: Buffer) => {
      const begin = chunk.indexOf(fenceOf(BEGIN));
      const rest = find(begin < 0 ? chunk : chunk.subarray(begin + fenceOf(BEGIN).length));
      if (rest) void told.promise.then((end) => resolve({ end, output: collector.finish().output }));
    });
    const read = createFrameReader((frame) => {
      const text = /^(?:end|0123456789abcdef01234567) (.*)$/.exec(frame)?.[1];
      if (text === undefined) return;
      told.resolve(parseEnd(text));
      // Plain exec asks for its fence now.
      if (stdin === '') child.stdin.write(`${MARK}\n`);
    });
    child.stderr.on('data', read);
    child.on('error', reject);
    child.stdin.on('error', reject);
    child.on('close', (code) => reject(new Error(`ended with ${code} and no mark`)));
  });
  if (stdin !== '') child.stdin.write(stdin);
  return ended.finally(() => endGroup(child.pid!));
}

/** Kills what is left of a process group; a wrapper that got its nonce may have ended by itself a moment before. */
function endGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

describe.each(Object.entries(LAYOUTS))('counters of cgroups, %s', (_name, layout) => {
  const END = { kind: 'exit', code: 7, oomKills: 2, forksRefused: 3 };

  test('by the supervisor', async () => {
    const command = cgroups(layout);
    const script = KEEPER.replaceAll('/sys/fs/cgroup', folder);
    const line = `${MARK} ${BEGIN},${MARK} 1 ${command.length} 0 0 \n`;
    const { end, output } = await endOf(
      'bash',
      ['-c', BOTH, 'both', ...LOADERS],
      request('L', SUPERVISOR) + request('L', script) + request('R', `${line}/${command}`),
    );
    expect(end).toMatchObject(END);
    expect(output).toBe('said\n');
  });

  test('by plain exec', async () => {
    const command = cgroups(layout);
    const script = RUN_COMMAND.replaceAll('/sys/fs/cgroup', folder);
    const { end, output } = await endOf('sh', ['-c', script, 'swebatch-exec', '/', 'bash', '-c', command]);
    expect(end).toMatchObject(END);
    expect(output).toBe('said\n');
  });
});
