/** `swebatch ctl RUN` and `ls RUN --watch`: one picture of a live run, followed from another terminal, from the database alone. */

import { dirname } from 'node:path';
import { pause } from '../../base/async/timer.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { workerOn } from '../../run/control/lock.ts';
import { readLiveRun } from '../../run/liveRun.ts';
import { countsOf, statusOf } from '../../run/standing.ts';
import { type LiveState, readLiveState } from '../../store/live/controls.ts';
import type { Store } from '../../store/open.ts';
import { type RunRow, runById } from '../../store/records/runs.ts';
import { classCounts } from '../../store/records/trials.ts';
import { commandOn, inCi, printData, say } from './context.ts';
import { doneText, fitParts, overallText, slotRows } from './progressState.ts';
import { countsText } from './table.ts';

/** Draws the run until it has ended, or its process, and says what would go on with it. */
export async function follow(store: Store, root: string, run: RunRow): Promise<void> {
  const redraw = process.stdout.isTTY === true && !inCi();
  const ended = await watchRun({
    store,
    run,
    redraw,
    everyMs: redraw ? 1000 : 15_000,
    write: printData,
    // A process that was killed cannot write that its run ended.
    gone: () => workerOn(root, run.name) === null,
  });
  say(lastWord(ended, root));
}

/** Pure. Names come from the record, where any program can write. */
export function stateLines(state: LiveState | null): string[] {
  if (!state) return [];
  return [plural(state.slots, 'slot'), ...state.models.map(modelLine)];
}

function modelLine(model: LiveState['models'][number]): string {
  const { arm, inFlight, waiting, blockedMs, rateLimited, limit, rpm, tpm } = model;
  return [
    `model of ${inert(arm)} ${plural(inFlight, 'call')} out`,
    ...(limit === null ? [] : [`at most ${limit} at a time`]),
    ...(waiting > 0 ? [`${waiting} wait`] : []),
    ...(blockedMs > 0 ? [`none starts for ${Math.ceil(blockedMs / 1000)} s`] : []),
    ...(rateLimited > 0 ? [`${rateLimited} refused as too many`] : []),
    ...(rpm ? [`${rpm} requests a minute`] : []),
    ...(tpm ? [`${tpm} tokens a minute`] : []),
  ].join(' · ');
}

const isLive = ({ status }: RunRow): boolean => status === 'running' || status === 'paused';

/** The picture of one moment: text alone, cut to the terminal where it will be drawn again. */
export function watchLines(store: Store, run: RunRow, now: number, terminal?: Terminal): string[] {
  const root = dirname(store.name);
  const live = readLiveRun(store, run);
  const counts = countsOf(root, run, classCounts(store, run.id));
  const { columns, rows } = terminal ?? { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };
  const above = [
    `run ${run.name} (${statusOf(root, run)}) · ${doneText(live)} sealed · ${countsText(counts)}`,
    overallText(live, now, live.pace?.nanoPerHour ?? 0),
    ...stateLines(readLiveState(store, run.id)),
  ].map((line) => (terminal ? fitParts(line, columns - 1).trimEnd() : line));
  // Rows that left the screen at its top cannot be drawn again, and a line that wraps would be two to go back over.
  const room = Math.max(2, rows - 1 - above.length);
  return [...above, ...slotRows(live, { now, idle: false, rows: room, width: columns - 1 })];
}

interface Terminal {
  readonly columns: number;
  readonly rows: number;
}

const LOOK_AGAIN_MS = 1000;

/** Resolves when the run has ended, or its process. */
export async function watchRun({
  store,
  write,
  redraw,
  signal,
  ...options
}: {
  readonly store: Store;
  readonly run: RunRow;
  readonly write: (text: string) => void;
  /** A terminal that can be redrawn; else one snapshot after the other. */
  readonly redraw: boolean;
  readonly everyMs: number;
  readonly signal?: AbortSignal;
  /** Whether no process works on the run; asked only while its record says that it runs. */
  readonly gone?: () => boolean;
}) {
  let drawn = 0;
  let missed = 0;
  for (;;) {
    const began = performance.now();
    const run = runById(store, options.run.id)!;
    const { columns = 80, rows = 24 } = process.stdout;
    const lines = watchLines(store, run, Date.now(), redraw ? { columns, rows } : undefined);
    // Back to the first line of the last picture, then clear what is below.
    write(`${redraw && drawn > 0 ? `\u001b[${drawn}A\u001b[J` : ''}${lines.join('\n')}\n`);
    drawn = lines.length;
    // Failed trials ended for reasons that are not the model's; a plain resume leaves them as they are.
    const failed = classCounts(store, run.id).get('infra') ?? 0;
    if (!isLive(run) || signal?.aborted) return { run, gone: false, failed };
    // A run that begins or ends may be seen without a process for a moment.
    missed = options.gone?.() ? missed + 1 : 0;
    if (missed === 2) return { run, gone: true, failed };
    const everyMs = missed > 0 ? Math.min(options.everyMs, LOOK_AGAIN_MS) : options.everyMs;
    // A run of 50,000 trials takes a second to read: the picture of it takes at most a tenth of a processor.
    await pause(Math.max(everyMs, 9 * (performance.now() - began)), signal);
  }
}

/** The end of the run, and the command that would go on with it. */
function lastWord({ run, gone, failed }: Awaited<ReturnType<typeof watchRun>>, root: string): string {
  const again = commandOn(root, `resume ${run.name}`);
  if (gone) return `no process works on ${run.name} any more; ${again} goes on`;
  if (run.status === 'complete' || run.status === 'failed') return `${run.name} has ended: ${run.status}`;
  const next =
    run.status === 'incomplete' && failed > 0
      ? `${commandOn(root, `resume ${run.name} --retry infra`)} runs again the ${failed} that failed`
      : `${again} goes on`;
  return `${run.name} has ended: ${run.status}; ${next}`;
}
