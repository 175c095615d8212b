// Commands that try to tell their own end, or that of another, in real containers.
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Environment } from '../../../src/environment/environment.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { repositoryImage, testDocker } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();

const python = (script: string) => `python3 - <<'PY'\n${script}\nPY`;

/** Prints ends with whatever could be a nonce in the command line or the environment of any process. */
const FROM_PROC = (end: string) =>
  python(`
import glob, os, re
found = set()
for name in ('cmdline', 'environ'):
    for path in glob.glob('/proc/[0-9]*/' + name):
        try: found |= set(re.findall(rb'(?<![0-9a-f])[0-9a-f]{24}(?![0-9a-f])', open(path, 'rb').read()))
        except OSError: pass
for nonce in found:
    os.write(1, b'\\x1e' + nonce + b' ${end}\\x1e')
os.write(1, b'late\\n')
os._exit(7)
`);

/** Writes ends on every stderr that is not its own: those of our processes, and of nobody else. */
const ON_STDERR = (ends: readonly string[]) =>
  python(`
import glob, os, time
mine = os.stat('/proc/self/fd/1').st_ino
seen = set()
for path in glob.glob('/proc/[0-9]*/fd/2'):
    try:
        inode = os.stat(path).st_ino
        if inode == mine or inode in seen: continue
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        seen.add(inode)
    except OSError: continue
    for end in ${JSON.stringify(ends)}:
        os.write(fd, ('\\x1e' + end + '\\x1e').encode())
time.sleep(0.5)
os._exit(7)
`);

/** As another user: what of our processes can be opened, or holds a nonce. */
const AS_ANOTHER = python(`
import glob, os, re
mine = os.getpid()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for pid in glob.glob('/proc/[0-9]*'):
    if pid == '/proc/%d' % mine: continue
    for name in ('environ', 'mem', 'fd/0', 'fd/1', 'fd/2', 'fd/4', 'fd/5'):
        try:
            os.close(os.open(pid + '/' + name, os.O_RDONLY | os.O_NONBLOCK))
            print('opened', pid, name)
        except OSError: pass
    try: text = open(pid + '/cmdline', 'rb').read()
    except OSError: continue
    for nonce in re.findall(rb'(?<![0-9a-f])[0-9a-f]{24}(?![0-9a-f])', text): print('nonce', pid, nonce)
print('looked')
`);

/** Reads the nonces of the running command in the memory of our processes and tells ends with them, on both streams. */
const FROM_MEMORY = python(`
import glob, os, re, time
mine = os.stat('/proc/self/fd/1').st_ino
nonces, streams = set(), {}
for pid in glob.glob('/proc/[0-9]*'):
    try:
        if b'swebatch-' not in open(pid + '/cmdline', 'rb').read(): continue
        mem = open(pid + '/mem', 'rb', 0)
        for line in open(pid + '/maps'):
            if '[heap]' not in line: continue
            low, high = (int(x, 16) for x in line.split()[0].split('-'))
            mem.seek(low)
            nonces |= set(re.findall(rb'[0-9a-f]{24}', mem.read(high - low)))
        inode = os.stat(pid + '/fd/2').st_ino
        if inode != mine: streams[inode] = os.open(pid + '/fd/2', os.O_WRONLY)
    except OSError: continue
for nonce in nonces:
    for fd in streams.values(): os.write(fd, b'\\x1e' + nonce + b' 0 0 0 0\\x1e')
    os.write(1, b'\\x1e' + nonce + b' 0 0 0 0\\x1e')
    os.write(1, b'\\x1e' + nonce + b'\\x1e')
time.sleep(0.5)
print('late')
os._exit(7)
`);

describe.skipIf(!available)('an end that a command forges', () => {
  const bench = testDocker();
  beforeAll(async () => {
    await repositoryImage();
  });
  afterEach(() => bench.stop());

  describe.each([true, false])('supervisor %s', (supervisor) => {
    const start = () => bench.start({ config: { supervisor } });
    /** The truth, or that nothing can be believed; and never a lie in the command that follows. */
    async function neverALie(env: Environment, command: string) {
      const told = await env.execute(command).catch((error: unknown) => error);
      if (told instanceof Error) {
        expect(told).toMatchObject({ name: 'EnvironmentError', code: 'died', sub: 'forged' });
        return;
      }
      const after = await env.execute('echo next; exit 3').catch((error: unknown) => error);
      if (after instanceof Error) expect(after).toMatchObject({ code: 'died', sub: 'forged' });
      else {
        expect(told).toMatchObject({ exitCode: 7 });
        expect(after).toMatchObject({ output: 'next\n', exitCode: 3 });
      }
    }

    test.each(['0 0 0 0 0', 'NaN 0 0 0', '1e400 0 0 0'])(
      'from what /proc shows of command lines and environments: %s',
      async (end) => {
        const env = await start();
        const result = await env.execute(FROM_PROC(end));
        expect(result).toMatchObject({ exitCode: 7 });
        expect(result.output).toMatch(/late\n$/);
        expect(await env.execute('echo next; exit 3')).toMatchObject({ output: 'next\n', exitCode: 3 });
      },
    );

    test.each([
      ['a good end', ['end 0 0 0 0']],
      ['no numbers', ['end NaN 1e400 0 0']],
      ['two ends', ['end 0 0 0 0', 'end 7 0 0 0']],
      ['noise', ['ready 9,9 /x', 'pid 1', '', 'x'.repeat(9000)]],
    ])('on the stderr of our processes, as the same user: %s', async (_name, ends) => {
      await neverALie(await start(), ON_STDERR(ends));
    });

    test('with what our memory holds, as the same user', async () => {
      await neverALie(await start(), FROM_MEMORY);
    });

    test('another user can open nothing of ours and finds no nonce', async () => {
      const env = await start();
      expect(await env.execute(AS_ANOTHER)).toMatchObject({ output: 'looked\n', exitCode: 0 });
    });

    test('a command is given no stream of ours but its output', async () => {
      const env = await start();
      const { output } = await env.execute('for f in /proc/self/fd/*; do readlink $f; done | sort -u');
      const open = output.split('\n').filter((name) => name.startsWith('pipe:'));
      // Of the shell that lists: its output, which is stderr too, goes into the pipe to sort.
      expect(open.length).toBeLessThanOrEqual(2);
      const inner = await env.execute('exec ls -l /proc/self/fd');
      const pipes = new Set(inner.output.match(/pipe:\[\d+\]/g));
      expect(pipes.size).toBe(1);
    });
  });
});
