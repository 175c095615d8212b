// What Docker and its daemon can do to an attempt, and that it is never shown to the model as output.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { LABELS } from '../../../src/environment/owner.ts';
import { cuttableDaemon } from '../../support/cuttableDaemon.ts';
import { docker, dockerAvailable, watchDocker } from '../../support/docker.ts';
import { derivedImage, repositoryImage, testDocker } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();
const SOCKET = process.env.DOCKER_HOST?.replace(/^unix:\/\//, '') ?? '/var/run/docker.sock';

/** The kernel's victim is what holds the container together, not the one that took the memory. */
const OOM_OF_PID_1 =
  "echo 1000 >/proc/1/oom_score_adj; echo 0 >/proc/self/oom_score_adj; for i in 1 2 3 4 5 6 7 8; do python3 -c 'import time; x = bytearray(60 * 10**6); time.sleep(30)' & done; wait";

describe.skipIf(!available)('docker faults', () => {
  const bench = testDocker();
  const stops: (() => void)[] = [];
  afterEach(async () => {
    await bench.stop();
    for (const stop of stops.splice(0)) stop();
  });

  describe.each([true, false])('supervisor %s', (supervisor) => {
    const start = (config = {}) => bench.start({ config: { supervisor, ...config } });

    test('a container removed in mid-command is env_died, not output [T-24]', async () => {
      const env = await start();
      const running = env.execute('echo before; sleep 30');
      const removal = new Promise((resolve) => setTimeout(resolve, 400)).then(() =>
        docker.getContainer(env.info.containerId!).remove({ force: true }),
      );
      await expect(running).rejects.toMatchObject({ name: 'EnvironmentError', code: 'died', sub: 'killed' });
      await removal;
      await expect(env.execute('echo after')).rejects.toMatchObject({ code: 'died', sub: 'killed' });
      await expect(env.capturePatch()).rejects.toMatchObject({ code: 'died' });
      await expect(env.getFile('/etc/passwd')).rejects.toMatchObject({ code: 'died' });
      await expect(env.putFile('/x', 'x')).rejects.toMatchObject({ code: 'died' });
    });

    test('an agent that makes every program complain of /etc/ld.so.preload loses no patch', async () => {
      const env = await start();
      await env.execute('echo /nowhere/x.so >/etc/ld.so.preload; echo new >fresh.txt');
      expect((await env.execute('cat fresh.txt')).output).toContain("object '/nowhere/x.so' from");
      const { patch, state, warnings } = await env.capturePatch();
      expect([state, warnings]).toEqual(['ok', []]);
      expect(Buffer.from(patch).toString()).toMatch(
        /^diff --git a\/fresh\.txt b\/fresh\.txt\n[\s\S]*\+new\n$/,
      );
    });

    test('processes that were left and take every place as it gets free end with the next command', async () => {
      const env = await start({ pids_limit: 40 });
      // It begins after its command, and holds that one's output.
      const greedy =
        'for (;;) { my $p = fork; defined $p or select undef, undef, undef, .002; defined $p and !$p and sleep 1000 and exit }';
      expect((await env.execute(`perl -e 'sleep 1; ${greedy}' & echo left`)).output).toBe('left\n');
      await expect
        .poll(async () => (await docker.getContainer(env.info.containerId!).top()).Processes.length)
        .toBeGreaterThanOrEqual(40);
      const met = await env.execute('sleep 0.1', { timeoutS: 40 });
      expect(met.exceptionInfo).toContain('every process in the background was killed');
      expect(await env.execute('echo $(echo done)', { timeoutS: 20 })).toMatchObject({
        output: 'done\n',
        exceptionInfo: '',
      });
    });

    test('a killed PID 1 is env_died with state and exit code [T-24]', async () => {
      const env = await start();
      const running = env.execute('sleep 30');
      setTimeout(() => void docker.getContainer(env.info.containerId!).kill(), 400);
      const error: unknown = await running.catch((e: unknown) => e);
      expect(error).toMatchObject({
        code: 'died',
        sub: 'killed',
        evidence: { state: { Status: 'exited', ExitCode: 137 } },
      });
    });

    test.each<[string, boolean, string | ((id: string) => Promise<unknown>)]>([
      ['PID 1 made the victim of the memory limit by a command', true, OOM_OF_PID_1],
      ['killed through the engine', false, (id) => docker.getContainer(id).kill()],
      ['stopped through the engine', false, (id) => docker.getContainer(id).stop({ t: 0 })],
      [
        'killed through the engine, after a command had been killed by the memory limit',
        false,
        (id) => docker.getContainer(id).kill({ signal: 'SIGKILL' }),
      ],
    ])('who ended it is told from the engine: %s [T-62]', async (_what, fromWithin, by) => {
      const env = await start({ memory: '256m' });
      await env.execute('exec python3 -c "x = bytearray(10**9)"');
      const ended = env.execute(typeof by === 'string' ? by : 'sleep 30');
      if (typeof by !== 'string') setTimeout(() => void by(env.info.containerId!), 400);
      await expect(ended).rejects.toMatchObject({ code: 'died', fromWithin });
    });

    test('after a restart of ours an end from within is one', async () => {
      const env = await start({ memory: '256m' });
      // Every process stopped, the supervisor with them: only a restart helps.
      const stuck = await env.execute('kill -STOP -1; sleep 30', { timeoutS: 1 });
      expect(stuck.timedOut).toBe(true);
      await expect(env.execute(OOM_OF_PID_1)).rejects.toMatchObject({ code: 'died', fromWithin: true });
    });

    test('a container that died between two commands is found out by the next', async () => {
      const env = await start();
      await docker.getContainer(env.info.containerId!).kill();
      await expect(env.execute('echo x')).rejects.toMatchObject({ code: 'died', sub: 'killed' });
    });

    test('the end of the lifetime is expired [M-37, T-25]', async () => {
      // Where an engine is slow the first is over before it is ready.
      const env = await start({ container_timeout: 8 }).catch(() => start({ container_timeout: 60 }));
      await expect(env.execute('sleep 100')).rejects.toMatchObject({ code: 'died', sub: 'expired' });
    });

    test('a command that fills the disk ends the attempt as disk_full [T-33]', async () => {
      const env = await bench.start({ config: { supervisor, disk: '30m' }, factory: { diskPollMs: 200 } });
      await expect(env.execute('head -c 60M /dev/urandom > /big; sleep 30')).rejects.toMatchObject({
        code: 'disk_full',
        evidence: { limit: '30m' },
      });
    });

    test('the disk is what is on the disk: a sparse file takes none of it, and makes no image', async () => {
      const request = { container: {} };
      const config = { supervisor, disk: '30m' };
      const env = await bench.start({ config, request, factory: { diskPollMs: 50 } });
      // Where nobody but its owner may look, and by two names.
      const SPARSE = 'mkdir -m 700 /closed; truncate -s 1G /closed/sparse; ln /closed/sparse /sparse';
      const { exitCode } = await env.execute(`${SPARSE}; chown -R nobody /closed; sleep 3`);
      expect(exitCode).toBe(0);
      expect(await env.unkept()).toMatchObject({ never: true, why: expect.stringContaining('1 GB') });
      await expect(env.keepWork()).rejects.toMatchObject({ code: 'disk_full', fromWithin: true });
      await expect(env.getFiles('/closed', 2 ** 20)).rejects.toThrow('more than 1 MB');
      await expect(env.getFile('/sparse')).rejects.toThrow('more than');
      // What is really written counts beside it, and killing who looks hides nothing.
      const KILLS =
        'while :; do cd /proc; for p in [0-9]*; do grep -qs "^/blocks" $p/cmdline && kill -9 $p; done; done';
      await expect(
        env.execute(`(${KILLS}) 2>/dev/null & head -c 60M /dev/urandom > /big; sleep 30`),
      ).rejects.toMatchObject({ code: 'disk_full' });
    });

    test('also when it only runs commands that are shorter than a look at the disk, and the work comes home', async () => {
      const env = await bench.start({ config: { supervisor, disk: '30m' }, factory: { diskPollMs: 1 } });
      const fill = async () => {
        await env.execute('echo work >> README.md; head -c 60M /dev/zero > /big');
        for (let i = 0; i < 1000; i += 1) await env.execute(':');
      };
      await expect(fill()).rejects.toMatchObject({ code: 'disk_full' });
      const captured = await env.capturePatch();
      expect([captured.state, Buffer.from(captured.patch).toString()]).toEqual([
        'ok',
        expect.stringContaining('+work'),
      ]);
    });
  });

  describe('connections', () => {
    const cutByTest = () => {
      const daemon = cuttableDaemon();
      stops.push(daemon.close);
      return daemon;
    };

    test('a cut connection is survived: the command is stopped, its result said to be unknown, work goes on [T-35]', async () => {
      const daemon = cutByTest();
      const env = await bench.start({ factory: { docker: { socketPath: daemon.path } } });
      await env.execute('echo kept > kept');
      const running = env.execute('echo begun; sleep 27182');
      await daemon.passed('begun');
      daemon.cut();
      const result = await running;
      expect(result).toMatchObject({ exitCode: -1, output: 'begun\n' });
      expect(result.exceptionInfo).toContain('not known');
      const after = await env.execute(
        `cat kept; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep -c '2718[2]'`,
      );
      expect(after.output).toBe('kept\n0\n');
      expect((await env.capturePatch()).state).toBe('ok');
    });

    test('a command whose connection was cut before it came through runs once, and what runs beside goes on [T-35]', async () => {
      const daemon = cutByTest();
      const env = await bench.start({ factory: { docker: { socketPath: daemon.path } } });
      await env.execute('sleep 31415 >/dev/null 2>&1 & echo $! > pid');
      daemon.cutBefore('echo once');
      const result = await env.execute('echo once | tee -a said');
      expect(result).toMatchObject({ exitCode: 0, output: 'once\n', exceptionInfo: '' });
      const after = await env.execute('cat said; kill -0 $(cat pid) && echo alive');
      expect(after.output).toBe('once\nalive\n');
    });

    test('of a command of which a part came through nothing runs but the whole of it [T-35]', async () => {
      const daemon = cutByTest();
      const env = await bench.start({ factory: { docker: { socketPath: daemon.path } } });
      daemon.cutBefore('echo last');
      const result = await env.execute(`echo first >> said\n: ${'x'.repeat(400_000)}\necho last >> said`);
      expect(result).toMatchObject({ exitCode: 0, exceptionInfo: '' });
      expect((await env.execute('cat said')).output).toBe('first\nlast\n');
    });

    test('a daemon that stays away is daemon_lost [T-35]', async () => {
      const daemon = cutByTest();
      const factory = bench.factory({}, { docker: { socketPath: daemon.path } });
      const env = await factory.start(await bench.request());
      const id = env.info.containerId!;
      const running = env.execute('sleep 30');
      await new Promise((resolve) => setTimeout(resolve, 200));
      daemon.refuse(true);
      daemon.cut();
      await expect(running).rejects.toMatchObject({ code: 'died', sub: 'daemon_lost' });
      await expect(factory.start(await bench.request())).rejects.toMatchObject({ code: 'daemon_lost' });
      await docker.getContainer(id).remove({ force: true });
    });

    test('create answered with 500 and 409 is tried again, and no ghost is left [T-36]', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'swebatch-daemon-'));
      const path = join(folder, 'docker.sock');
      const names: string[] = [];
      const server = createHttpServer((incoming, outgoing) => {
        const name = /containers\/create\?.*name=([^&]+)/.exec(incoming.url ?? '')?.[1];
        const forward = (answer: boolean) => {
          const upstream = httpRequest(
            { socketPath: SOCKET, path: incoming.url, method: incoming.method, headers: incoming.headers },
            (response) => {
              if (!answer) {
                response.resume();
                response.on('end', () => {
                  outgoing.writeHead(500, { 'content-type': 'application/json' });
                  outgoing.end('{"message":"the daemon is confused"}');
                });
                return;
              }
              outgoing.writeHead(response.statusCode ?? 500, response.headers);
              response.pipe(outgoing);
            },
          );
          upstream.on('error', () => outgoing.destroy());
          incoming.pipe(upstream);
        };
        if (!name) return forward(true);
        names.push(name);
        // The first is made but answered with 500, the second is refused with 409, the third passes.
        if (names.length === 1) return forward(false);
        if (names.length === 2) {
          incoming.resume();
          outgoing.writeHead(409, { 'content-type': 'application/json' });
          return void outgoing.end('{"message":"Conflict. The container name is already in use"}');
        }
        return forward(true);
      });
      server.on('upgrade', (incoming, client, head) => {
        const upstream = connect(SOCKET, () => {
          const lines = Object.entries(incoming.headers).map(([k, v]) => `${k}: ${String(v)}`);
          upstream.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
          upstream.write(head);
          client.pipe(upstream).pipe(client);
        });
        upstream.on('error', () => client.destroy());
        client.on('error', () => upstream.destroy());
      });
      await new Promise<void>((resolve) => server.listen(path, resolve));
      stops.push(() => {
        server.closeAllConnections();
        server.close();
        rmSync(folder, { recursive: true, force: true });
      });
      const env = await bench.start({
        config: { seal_history: false, supervisor: false },
        factory: { docker: { socketPath: path } },
      });
      expect((await env.execute('echo up')).output).toBe('up\n');
      expect(new Set(names).size).toBe(3);
      const left = await docker.listContainers({ all: true, filters: { name: names.slice(0, 2) } });
      expect(left).toEqual([]);
    });
  });

  describe('starting', () => {
    test('an image that is not there and may not be pulled is image_missing, with the fix [M-70]', async () => {
      const error: unknown = await bench
        .start({ image: 'swebatch-envtest/never-built:1' })
        .catch((e: unknown) => e);
      expect(error).toMatchObject({ code: 'image_missing' });
      expect(String(error)).toMatch(/swebatch-envtest\/never-built:1.*environment\.pull/);
    });

    test('a failing setup command is setup_failed with its tail, and the container is gone [M-70, T-38]', async () => {
      const phases: string[] = [];
      const request = await bench.request({
        startupCommand: 'echo some text; exit 3',
        onPhase: (p) => phases.push(p),
      });
      await expect(bench.factory().start(request)).rejects.toMatchObject({
        code: 'setup_failed',
        message: 'setup failed (rc 3): some text',
      });
      expect(phases.at(-1)).toBe('setup');
      expect(
        await docker.listContainers({
          all: true,
          filters: { label: [`${LABELS.attempt}=${request.owner.attempt}`, `${LABELS.run}=test-run`] },
        }),
      ).toEqual([]);
    });

    test('a setup command that hangs ends with start_timeout [T-38]', async () => {
      await expect(bench.start({ config: { start_timeout: 1 }, setup: 'sleep 60' })).rejects.toMatchObject({
        code: 'setup_failed',
        message: expect.stringContaining('timed out after 1s'),
      });
    });

    test('what the setup did is not in the patch', async () => {
      const env = await bench.start({ setup: 'echo setup >> README.md; mkdir made; echo x > made/x' });
      expect((await env.capturePatch()).state).toBe('empty');
    });

    test('an abort while starting leaves no container', async () => {
      const abort = new AbortController();
      const request = await bench.request({
        signal: abort.signal,
        onPhase: (p) => p === 'start' && abort.abort(new Error('stop')),
      });
      await expect(bench.factory().start(request)).rejects.toThrow('stop');
      expect(
        await docker.listContainers({
          all: true,
          filters: { label: [`${LABELS.attempt}=${request.owner.attempt}`, `${LABELS.run}=test-run`] },
        }),
      ).toEqual([]);
    });

    test('an image without bash runs by plain exec, with its shell, and says so', async () => {
      const image = await derivedImage(
        'rm -rf /testbed; mkdir /testbed; echo start > /testbed/file; rm -f /usr/bin/git /bin/git; mv /usr/bin/bash /usr/bin/not-bash',
      );
      const env = await bench.start({ image, config: { interpreter: ['sh', '-c'] } });
      expect(env.info.transport).toBe('exec');
      expect(env.info.history).toBe('absent');
      expect(env.info.notes.join(' ')).toContain('plain exec instead of the supervisor');
      expect(await env.execute('echo $((1 + 1)); exit 4')).toMatchObject({
        output: '2\n',
        exitCode: 4,
        transport: 'exec',
      });
      expect(
        await env.execute('sleep 16180 & setsid sleep 16180 & sleep 16180', { timeoutS: 1 }),
      ).toMatchObject({ timedOut: true });
      expect((await env.execute(`cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '1618[0]'`)).output).toBe(
        '0\n',
      );
      await env.execute('echo more >> file');
      const captured = await env.capturePatch();
      expect(Buffer.from(captured.patch).toString()).toContain(' start\n+more\n');
    });
  });

  describe('containment', () => {
    test('limits, no network, no mounts, no privileges, owner labels [M-37, T-37]', async () => {
      const env = await bench.start({ config: { memory: '300m', pids_limit: 77, cpus: 1.5 } });
      const {
        HostConfig: host,
        Mounts: mounts,
        Config: config,
      } = await docker.getContainer(env.info.containerId!).inspect();
      expect(host).toMatchObject({
        Memory: 300 * 1024 ** 2,
        MemorySwap: 300 * 1024 ** 2,
        PidsLimit: 77,
        NanoCpus: 1.5e9,
        NetworkMode: 'none',
        Privileged: false,
        Init: false,
        SecurityOpt: ['no-new-privileges'],
      });
      expect([mounts, host.Binds, host.CapAdd]).toEqual([[], null, null]);
      expect(config.Healthcheck).toEqual({ Test: ['NONE'] });
      expect(config.Labels).toMatchObject({
        [LABELS.run]: 'test-run',
        [LABELS.instance]: 'test__test-1',
        [LABELS.pid]: String(process.pid),
      });
    });

    test('nothing of our own environment enters, and the network is away at once [M-56, T-49, T-58]', async () => {
      process.env.SWEBATCH_TEST_CANARY = 'canary-5f2b7c';
      try {
        const env = await bench.start();
        const { output } = await env.execute('env; cat /proc/1/environ');
        expect(output).not.toContain('canary-5f2b7c');
        const net = await env.execute(
          `python3 -c "
import socket, time
began = time.monotonic()
try: socket.create_connection(('example.com', 80), 50)
except OSError: print(time.monotonic() - began)"`,
        );
        expect(net.output).toMatch(/^[\d.]+\n$/);
        // Not the fifty seconds that a packet without an answer would take.
        expect(Number(net.output)).toBeLessThan(30);
      } finally {
        delete process.env.SWEBATCH_TEST_CANARY;
      }
    });

    test('close does not wait for processes that ignore signals, and the container is gone', async () => {
      const env = await bench.start();
      await env.execute('nohup bash -c "trap \'\' TERM INT; while :; do sleep 1; done" >/dev/null 2>&1 &');
      const watch = await watchDocker({
        container: [env.info.containerId!],
        event: ['kill', 'stop', 'destroy'],
      });
      await env.close();
      await watch.until((seen) => seen.some(({ Action }) => Action === 'destroy'));
      watch.close();
      // A stop would have the daemon's own patience of ten seconds.
      expect(watch.seen.map(({ Action, Actor }) => [Action, Actor.Attributes.signal])).toEqual([
        ['kill', '9'],
        ['destroy', undefined],
      ]);
      await expect(docker.getContainer(env.info.containerId!).inspect()).rejects.toMatchObject({
        statusCode: 404,
      });
    });

    test('a container started ahead is the one that is taken, and one not taken is removed', async () => {
      const factory = bench.factory({}, { maxPrepared: 2 });
      const requests = await Promise.all([bench.request(), bench.request(), bench.request()]);
      for (const request of requests) factory.prepare(request);
      const [first] = requests;
      const env = await factory.start(first!);
      const labelled = () =>
        docker.listContainers({
          all: true,
          filters: { label: [`${LABELS.run}=test-run`, `${LABELS.attempt}=${requests[1]!.owner.attempt}`] },
        });
      expect((await env.execute('echo up')).output).toBe('up\n');
      await env.close();
      await factory.close();
      expect(await labelled()).toEqual([]);
      await expect(factory.start(requests[2]!)).rejects.toMatchObject({ code: 'start_failed' });
    });
  });

  describe('an image without git', () => {
    test('is captured from a copy of the start tree, in a patch that git applies', async () => {
      const tree = `rm -rf /testbed; mkdir -p /testbed/dir; cd /testbed; seq 1 60 > lines; printf 'a\\r\\nb' > crlf; echo gone > gone; echo x > dir/x; ln -s lines link; head -c 3000 /dev/urandom > bin; echo r > run.sh; echo 1 > 'sp ace'; cp -a /testbed /start-copy`;
      const image = await derivedImage(`${tree}; rm -f /usr/bin/git`);
      const env = await bench.start({ image });
      expect(env.info.history).toBe('absent');
      await env.execute(
        `sed -i '5d;30s/30/thirty/;60s/$/ end/' lines; printf 'a\\r\\nb\\r\\nc' > crlf; rm gone; rm dir/x; rmdir dir; echo now-a-file > dir; ln -sfn crlf link; head -c 4000 /dev/urandom > bin; chmod +x run.sh; echo 2 >> 'sp ace'; echo new > 'ünï "q"'; : > empty; mkfifo pipe; mkdir __pycache__; echo c > __pycache__/c.pyc; ln crlf hard`,
      );
      const captured = await env.capturePatch();
      expect(captured.state).toBe('ok');
      const after = (
        await env.execute('tar -cf - --exclude=__pycache__ --exclude=pipe -C /testbed . | base64 -w0')
      ).output;
      const other = await bench.start();
      await other.putFile('/patch', captured.patch);
      await other.putFile('/after.b64', after);
      // The same start tree is in the image's copy, which this container does not have: it comes by the first one.
      const startTar = (await env.execute('tar -cf - -C /start-copy . | base64 -w0')).output;
      await other.putFile('/start.b64', startTar);
      const applied = await other.execute(
        'mkdir /s /a && base64 -d /start.b64 | tar -xf - -C /s && base64 -d /after.b64 | tar -xf - -C /a && cd /s && git apply --check --whitespace=nowarn /patch && git apply --whitespace=nowarn /patch && diff -r --no-dereference /s /a && [ -x /s/run.sh ] && echo same',
        { cwd: '/' },
      );
      expect(applied.output).toBe('same\n');
    });
  });

  afterAll(async () => {
    await bench.stop();
    await repositoryImage();
  });
});
