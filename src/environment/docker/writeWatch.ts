/**
 * Writers where the tests and their reward are, while the tests run: a container of ours beside the other one runs watch.c, which sees the
 * processes of the other and its files; nobody in there can trace it, and a process that kills it or stops it gives itself away.
 */
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { startTimer } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { NotWatched, SeenWrite, StartRequest, WriteWatch } from '../environment.ts';
import { WORK_LABELS } from '../owner.ts';
import { daemonAnswer } from '../places/dockerFault.ts';
import type { Discard } from './container.ts';
import { attachedTo, createOwnContainer } from './ownImage.ts';
import { createDemux } from './startProcess.ts';

/** watch.c prints a line every second; a machine may be slow. */
const SILENT_MS = 30_000;
const MOST_LINES = 1000;

/**
 * fanotify(7) asks for the first; the second is the way to the files of the other container, and the third through a folder that somebody closed: an
 * agent that gave /logs to another user was not watched.
 */
const RIGHTS = ['SYS_ADMIN', 'SYS_PTRACE', 'DAC_READ_SEARCH'];

/** Refused where the engine does not start such a container, or its kernel does not give what that asks for. */
export async function startWatch(
  { docker, discard }: { readonly docker: Docker; readonly discard: Discard },
  watched: Docker.Container,
  request: Pick<StartRequest, 'owner' | 'instanceId'>,
  { folders, workdir }: { readonly folders: readonly string[]; readonly workdir: string },
): Promise<WriteWatch | NotWatched> {
  let container: Docker.Container | undefined;
  try {
    const { Config, Created } = await daemonAnswer(watched.inspect());
    // Files of the agent are younger than its container; in an end state, than the container that it worked in.
    const since = Math.floor(Date.parse(Config.Labels?.[WORK_LABELS.since] || Created) / 1000);
    const reach = { PidMode: `container:${watched.id}`, NetworkMode: 'none', CapAdd: RIGHTS };
    container = await createOwnContainer(docker, 'watch', request, {
      args: [String(since), workdir, ...folders],
      user: '0:0',
      reach,
    });
    const opened = container;
    const lines = watchLines(await attachedTo(opened), () => void discard(opened));
    await daemonAnswer(container.start());
    try {
      await lines.said('ready');
    } catch (error) {
      // Without a word of its own somebody inside was faster.
      if (lines.words() !== '') throw error;
      await discard(opened);
      return { again: async () => undefined, end: async () => undefined };
    }
    let ending: ReturnType<WriteWatch['end']> | undefined;
    return {
      async again() {
        lines.write('again\n');
        // A watch that somebody ended says so in `end`.
        await lines.said('marked').catch(() => undefined);
      },
      end() {
        ending ??= (async () => {
          lines.finish();
          const whole = await lines.said('end').then(
            () => true,
            () => false,
          );
          await discard(opened);
          return whole ? lines.written() : undefined;
        })();
        return ending;
      },
    };
  } catch (error) {
    if (container) await discard(container);
    return { refused: errorText(error) };
  }
}

const WHO: ReadonlySet<string> = new Set<SeenWrite['by']>(['left', 'program', 'script', 'tests', 'unknown']);
const isWho = (by: string | undefined): by is SeenWrite['by'] => WHO.has(by ?? '');

/** `stuck`: the watch has said nothing for long; its removal ends every wait for it inside. */
function watchLines(stream: Duplex, stuck: () => void) {
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  const heard = new Set<string>();
  const written = new Map<string, SeenWrite>();
  let rest = '';
  let words = '';
  let whole = true;
  let over = false;
  let timer = startTimer(SILENT_MS, stuck);
  const ended = () => {
    if (over) return;
    over = true;
    timer.cancel();
    for (const { reject } of waiting.values()) reject(new Error(words.trim()));
  };
  const line = (text: string) => {
    const [word = '', by, program = '', path = ''] = text.split(' ');
    if (word === 'wrote' && isWho(by)) {
      // In the order of their last lines.
      const key = `${by} ${program} ${path}`;
      const again = written.delete(key);
      if (again || written.size < MOST_LINES) written.set(key, { by, program, path });
    } else if (word === 'lost') whole = false;
    else if (word === 'ready' || word === 'marked' || word === 'end') {
      heard.add(word);
      waiting.get(word)?.resolve();
    } else if (word !== '.') words = `${words}${text}\n`.slice(0, 500);
  };
  const take = (data: Buffer) => {
    timer.cancel();
    if (!over) timer = startTimer(SILENT_MS, stuck);
    const lines = (rest + data.toString('latin1')).split('\n');
    rest = lines.pop()!.slice(-4096);
    for (const one of lines) line(one);
  };
  stream.on(
    'data',
    createDemux((type, data) => (type === 1 ? take(data) : line(data.toString('latin1')))),
  );
  stream.on('error', ended).on('end', ended).on('close', ended);
  return {
    write: (text: string) => void (over || stream.write(text)),
    finish: () => void (over || stream.end()),
    async said(word: string): Promise<void> {
      if (heard.delete(word)) return;
      if (over) throw new Error(words.trim());
      const one = Promise.withResolvers<void>();
      waiting.set(word, one);
      await one.promise.finally(() => waiting.delete(word));
      heard.delete(word);
    },
    words: () => words.trim(),
    /** Undefined where the kernel dropped events, which may have been any. */
    written: () => (whole ? [...written.values()] : undefined),
  };
}
