/**
 * The slow path: one Engine API exec per command, for images without bash and for `supervisor: false`. The API cannot kill an exec,
 * so a second one sweeps /proc for the command's mark.
 */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { createDemux } from '../docker/demux.ts';
import { readFault } from '../engines/dockerFault.ts';
import { createCollector } from './outputCollector.ts';
import { createPace } from './pace.ts';
import { BASE_SCRIPT, SWEEP_SCRIPT } from './supervisorScript.ts';
import { type CommandEnd, createMarkScanner, MAX_ARGV_BYTES, type Transport } from './transport.ts';

const nonce = () => randomBytes(12).toString('hex');

/**
 * Arguments: end nonce, cwd, then the command line. stderr is joined inside, because Docker's two frame types lose the order; the end
 * mark follows on the same pipe, so a background child that keeps the stream open does not delay the end. The first thing printed on
 * stderr is the wrapper's pid.
 */
export const WRAPPER = String.raw`
_sb_n=$1; _sb_d=$2; shift 2
printf '\036pid %s\036' $$ >&2
if [ ! -d "$_sb_d" ]; then printf '\036%s nocwd\036' "$_sb_n"; exit 0; fi
cd -- "$_sb_d" || exit 126
_sb_c=
for _sb_f in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do [ -r $_sb_f ] && _sb_c=$_sb_f && break; done
_sb_q=
for _sb_f in /sys/fs/cgroup/pids/pids.events /sys/fs/cgroup/pids.events; do [ -r $_sb_f ] && _sb_q=$_sb_f && break; done
_sb_counters() {
  _sb_o=0; _sb_p=0
  [ -z "$_sb_c" ] || while read -r _sb_k _sb_v; do [ "$_sb_k" = oom_kill ] && _sb_o=$_sb_v; done <$_sb_c
  [ -z "$_sb_q" ] || while read -r _sb_k _sb_v; do [ "$_sb_k" = max ] && _sb_p=$_sb_v; done <$_sb_q
  return 0
}
_sb_counters; _sb_b=$_sb_o; _sb_r=$_sb_p
(
  unset OLDPWD SHLVL
  printf 800 >/proc/self/oom_score_adj
  exec "$@" </dev/null 2>&1
) 2>/dev/null
_sb_s=$?
_sb_counters
printf '\036%s %s %s 0 %s\036' "$_sb_n" "$_sb_s" $((_sb_o - _sb_b)) $((_sb_p - _sb_r))
`;

/** For images without bash: POSIX sh, grep for the mark, pid by pid. Arguments as SWEEP_SCRIPT. */
const SH_SWEEP = String.raw`
i=0
while [ $i -lt 20 ]; do
  i=$((i + 1)); hits=0
  for d in /proc/[0-9]*; do
    p=\${d#/proc/}
    case ",$2,$$," in *",$p,"*) continue ;; esac
    read -r s <$d/stat || continue
    case "\${s##*) }" in Z* | X*) continue ;; esac
    if [ "$1" != '*' ]; then grep -q "SWEBATCH_CMD=$1" $d/environ || continue; fi
    kill -9 $p && hits=1
  done
  [ $hits = 0 ] && break
done
printf done
`.replaceAll('\\${', '${');

/** As BASE_SCRIPT, for images without bash. */
const SH_BASE = String.raw`
printf 1
for d in /proc/[0-9]*; do
  read -r s <$d/stat || continue
  s="\${s##*) }"; s=\${s#* }
  case "$s" in '1 '*) printf ',%s' "\${d#/proc/}" ;; esac
done
`.replaceAll('\\${', '${');

/** A sweep that ran says how many it killed; anything else is the runtime's own text. */
const swept = (answer: string | undefined) => /^(\d+|done)$/.test(answer ?? '');

const DETACHED_TIMEOUT_MS = 5000;
const LAST_WORDS = 4096;
/** runc refuses an exec while processes of the last command are still being reaped. */
const UNSTARTED_WAITS_MS = [100, 500];

export async function createPlainExecTransport(
  container: Docker.Container,
  interpreter: readonly string[],
  place: { putFile(path: string, content: string): Promise<void> },
): Promise<Transport> {
  let words = '';

  const open = async (cmd: readonly string[], env: readonly string[]): Promise<Duplex> => {
    const exec = await container.exec({
      Cmd: [...cmd],
      Env: [...env],
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
      // Not the image's: the agent may have removed that folder.
      WorkingDir: '/',
    });
    return exec.start({ hijack: true, stdin: false });
  };

  /** A short script of ours; resolves to its stdout, or undefined when it did not end in time. */
  const probe = async (cmd: readonly string[]): Promise<string | undefined> => {
    const stream = await open(cmd, []);
    let out = '';
    stream.on(
      'data',
      createDemux((type, data) => {
        if (type === 1) out += data.toString('latin1');
        else words = data.toString('latin1').slice(-LAST_WORDS);
      }),
    );
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        stream.destroy();
        resolve(undefined);
      }, DETACHED_TIMEOUT_MS);
      const done = () => {
        clearTimeout(timer);
        resolve(out);
      };
      stream.on('end', done).on('close', done).on('error', done);
    });
  };

  const hasBash = (await probe(['bash', '-p', '-c', 'printf yes'])) === 'yes';
  const findKeep = async () =>
    (await probe(hasBash ? ['bash', '-p', '-c', BASE_SCRIPT] : ['sh', '-c', SH_BASE])) || '1';
  let keep = await findKeep();
  const sweep = (mark: string, wrapper: string) => {
    // The wrapper is spared: it reports the end, as it does after any other death of the command.
    const spared = wrapper ? `${keep},${wrapper}` : keep;
    return probe(
      hasBash
        ? ['bash', '-p', '-c', SWEEP_SCRIPT, 'swebatch-sweep', mark, spared, wrapper]
        : ['sh', '-c', SH_SWEEP, 'swebatch-sweep', mark, spared],
    );
  };

  return {
    name: 'exec',
    async run(request) {
      keep ||= await findKeep();
      const mark = nonce();
      const endNonce = nonce();
      let { command } = request;
      if (Buffer.byteLength(command) > MAX_ARGV_BYTES) {
        const path = `/tmp/.swebatch.${mark}`;
        await place.putFile(path, command);
        command = `. ${path}; set -- $?; rm -f ${path}; exit $1`;
      }
      const line = request.harness
        ? [...(hasBash ? ['bash', '-p'] : ['sh']), '-c', command]
        : [...interpreter, command];
      const env = [
        ...Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
        `SWEBATCH_CMD=${mark}`,
      ];
      let pid = '';
      let collector = createCollector(request.maxOutputBytes);
      /** One exec. Without the wrapper's pid nothing of ours ran, and what came back is the runtime's own text. */
      const attempt = async (): Promise<CommandEnd> => {
        collector = createCollector(request.maxOutputBytes);
        let stream: Duplex;
        try {
          stream = await open(['sh', '-c', WRAPPER, 'swebatch-exec', endNonce, request.cwd, ...line], env);
        } catch (error) {
          words = readFault(error).text;
          return { kind: 'unstarted' };
        }
        const pace = createPace(stream);
        const { promise, resolve } = Promise.withResolvers<CommandEnd>();
        const scan = createMarkScanner(endNonce, collector, (end) => {
          resolve(end);
          stream.destroy();
        });
        const onData = createDemux((type, data) => {
          if (type === 1) {
            scan(data);
            pace(data.length, collector.totalBytes);
          } else {
            words = data.toString('latin1').slice(-LAST_WORDS);
            pid ||= /\x1epid (\d+)\x1e/.exec(words)?.[1] ?? '';
          }
        });
        const lost = () => resolve(pid ? { kind: 'lost' } : { kind: 'unstarted' });
        stream.on('data', onData).on('end', lost).on('close', lost).on('error', lost);
        return promise;
      };
      const untilStarted = async (): Promise<CommandEnd> => {
        let end = await attempt();
        for (const wait of UNSTARTED_WAITS_MS) {
          if (end.kind !== 'unstarted') return end;
          words = collector.finish().output.slice(-LAST_WORDS) || words;
          await new Promise((resolve) => setTimeout(resolve, wait));
          end = await attempt();
        }
        return end;
      };
      let sweeping: Promise<unknown> | undefined;
      return {
        ended: untilStarted().then(async (end) => {
          await sweeping;
          return end;
        }),
        kill: () => {
          sweeping ??= sweep(mark, pid).catch(() => undefined);
        },
        output: () => collector.finish(),
        transport: 'exec',
      };
    },
    killAll: async () => swept(await sweep('*', '')),
    reset: () => {
      keep = '';
    },
    lastWords: () => words,
    close: () => undefined,
  };
}
