/** `swebatch ctl RUN` and `ls RUN --watch`: one picture of a live run, followed from another terminal, from the database alone. */

import { dirname } from 'node:path';
import { pause } from '../../base/async/timer.ts';
import { shorten } from '../../base/text/columns.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import { isFinalReason } from '../../outcome.ts';
import { workerOn } from '../../run/control/lock.ts';
import { countsOf, statusOf } from '../../run/standing.ts';
import { type LiveState, readLiveState } from '../../store/live/controls.ts';
import type { Store } from '../../store/open.ts';
import { gradingDurations } from '../../store/records/evaluations.ts';
import { type RunRow, runById, spentNano, storedConfig } from '../../store/records/runs.ts';
import { classCounts, type TrialLine, trialLines } from '../../store/records/trials.ts';
import { viewerQueries } from '../../store/records/viewerQueries.ts';
import { commandOn, inCi, printData, say } from './context.ts';
import { clock, etaWithGradings, fitParts, type OpenGradings } from './progressState.ts';
import { countsText, spentText } from './table.ts';

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

/** The picture of one moment: pure text, so that it can be tested. */
export function watchLines(store: Store, run: RunRow, now: number): string[] {
  const root = dirname(store.name);
  const status = statusOf(root, run);
  const counts = countsOf(root, run, classCounts(store, run.id));
  const planned = Object.values(counts).reduce((a, b) => a + b, 0);
  const lines = trialLines(store, run.id);
  const sealed = lines.filter((l) => l.state === 'sealed');
  const money = spentNano(store, run.id);
  const slots = status === run.status ? viewerQueries(store).slots(run.id) : [];
  const until = isLive(run) ? now : Date.parse(run.finished_at ?? run.created_at);
  const elapsedMs = Math.max(1, until - Date.parse(run.created_at));
  const durations = sealed.flatMap((l) => (l.elapsed_ms === null ? [] : [l.elapsed_ms]));
  const graded = lines.filter((l) => l.outcome !== null);
  const resolved = graded.filter((l) => l.resolved === 1).length;
  const perHour = money.nano / (elapsedMs / 3_600_000);
  const grading = openGradings(store, run, sealed);
  const arms = lines.some((l) => l.arm !== lines[0]!.arm);
  const epochs = lines.some((l) => l.epoch > 1);
  const remaining = etaWithGradings(
    { durations, remaining: planned - sealed.length, slots: Math.max(1, slots.length) },
    grading,
  );
  return [
    `run ${run.name} (${status}) · ${sealed.length}/${planned} sealed · ${countsText(counts)}`,
    `${spentText(money)}${run.budget_nano === null ? '' : ` of ${formatCost(run.budget_nano)}`} · ${formatCost(Math.round(perHour))}/h · ${clock(elapsedMs)}${status === 'running' ? ` · ETA ${remaining}` : ''}` +
      (graded.length > 0 ? ` · resolved ${resolved}/${graded.length}` : '') +
      (grading.open > 0 ? ` · ${grading.open} to grade` : ''),
    ...slots.map((slot) => {
      const { phase_offset_ms: offset, started_at } = slot;
      const since = offset === null ? 0 : now - Date.parse(started_at) - offset;
      const arm = arms ? ` ${inert(slot.arm)}` : '';
      const epoch = epochs ? ` ep ${slot.epoch}` : '';
      return `${String(slot.slot ?? '?').padStart(3)} ${inert(slot.instance_id)}${arm}${epoch} step ${slot.steps} ${slot.phase ?? '-'} ${clock(since)}`;
    }),
  ];
}

/** What a run that grades has yet to grade, and how long that took so far. */
function openGradings(store: Store, run: RunRow, sealed: readonly TrialLine[]): OpenGradings {
  const { enabled, workers } = storedConfig(run).grading ?? {};
  if (enabled !== true) return { workers: 1, open: 0, durations: [0] };
  const open = sealed.filter(
    (l) => l.outcome === null && l.exit_reason !== null && isFinalReason(l.exit_reason),
  );
  return {
    workers: typeof workers === 'number' ? workers : 1,
    open: open.length,
    durations: gradingDurations(store, run.id),
  };
}

const LOOK_AGAIN_MS = 1000;

/**
 * A line that wraps would be two rows to go back over, and rows that left the screen at its top cannot be drawn again: slots that
 * do not fit are counted.
 */
function fitting(above: readonly string[], slots: readonly string[]): string[] {
  const { columns = 80, rows = 24 } = process.stdout;
  const room = Math.max(2, rows - 1 - above.length);
  const shown = slots.length > room ? slots.slice(0, room - 1) : slots;
  const more = slots.length - shown.length;
  return [...above, ...shown, ...(more > 0 ? [`    ${more} more slots at work`] : [])].map((line) =>
    line.includes(' · ') ? fitParts(line, columns - 1).trimEnd() : shorten(line, columns - 1),
  );
}

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
    const [head = '', spend = '', ...slots] = watchLines(store, run, Date.now());
    const above = [head, spend, ...stateLines(readLiveState(store, run.id))];
    const lines = redraw ? fitting(above, slots) : [...above, ...slots];
    // Back to the first line of the last picture, then clear what is below.
    write(`${redraw && drawn > 0 ? `\u001b[${drawn}A\u001b[J` : ''}${lines.join('\n')}\n`);
    drawn = lines.length;
    // They ended for reasons that are not the model's; a plain resume leaves them as they are.
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

/** How it ended, and what would go on with it. */
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
