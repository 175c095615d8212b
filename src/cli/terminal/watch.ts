/** `swebatch ls RUN --watch`: follows a live run from another terminal, from the database alone. */

import { pause } from '../../base/async/timer.ts';
import { shorten } from '../../base/text/columns.ts';
import { inert } from '../../base/text/inert.ts';
import { formatCost } from '../../money.ts';
import { isFinalReason } from '../../outcome.ts';
import type { Store } from '../../store/open.ts';
import { gradingDurations } from '../../store/records/evaluations.ts';
import { type RunRow, runById, spentNano, storedConfig } from '../../store/records/runs.ts';
import { classCounts, type TrialLine, trialLines } from '../../store/records/trials.ts';
import { type SlotRow, viewerQueries } from '../../store/records/viewerQueries.ts';
import { commandOn } from './nextStep.ts';
import { countsText, spentText } from './table.ts';
import { clock, etaWithGradings, type OpenGradings } from './timeLeft.ts';

export interface WatchOptions {
  readonly store: Store;
  readonly run: RunRow;
  readonly write: (text: string) => void;
  /** A terminal that can be redrawn; else one snapshot after the other. */
  readonly redraw: boolean;
  readonly everyMs: number;
  readonly now?: () => number;
  readonly signal?: AbortSignal;
  /** Whether no process works on the run; asked only while its record says that it runs. */
  readonly gone?: () => boolean;
  /** Lines above those of the slots. */
  readonly also?: () => readonly string[];
}

export interface Watched {
  readonly run: RunRow;
  readonly gone: boolean;
  /** Trials that ended for reasons that are not the model's; a plain resume leaves them as they are. */
  readonly failed: number;
}

const isLive = ({ status }: RunRow): boolean => status === 'running' || status === 'paused';

/** The picture of one moment: pure text, so that it can be tested. */
export function watchLines(store: Store, run: RunRow, now: number): string[] {
  const counts = Object.fromEntries(classCounts(store, run.id));
  const planned = Object.values(counts).reduce((a, b) => a + b, 0);
  const lines = trialLines(store, run.id);
  const sealed = lines.filter((l) => l.state === 'sealed');
  const money = spentNano(store, run.id);
  const slots = viewerQueries(store).slots(run.id);
  const until = isLive(run) ? now : Date.parse(run.finished_at ?? run.created_at);
  const elapsedMs = Math.max(1, until - Date.parse(run.created_at));
  const durations = sealed.flatMap((l) => (l.elapsed_ms === null ? [] : [l.elapsed_ms]));
  const graded = lines.filter((l) => l.outcome !== null);
  const resolved = graded.filter((l) => l.resolved === 1).length;
  const perHour = money.nano / (elapsedMs / 3_600_000);
  const grading = openGradings(store, run, sealed);
  const remaining = etaWithGradings(
    { durations, remaining: planned - sealed.length, slots: Math.max(1, slots.length) },
    grading,
  );
  return [
    `run ${run.name} (${run.status}) · ${sealed.length}/${planned} sealed · ${countsText(counts)}`,
    `${spentText(money)}${run.budget_nano === null ? '' : ` of ${formatCost(run.budget_nano)}`} · ${formatCost(Math.round(perHour))}/h · ${clock(elapsedMs)}${run.status === 'running' ? ` · ETA ${remaining}` : ''}` +
      (graded.length > 0 ? ` · resolved ${resolved}/${graded.length}` : '') +
      (grading.open > 0 ? ` · ${grading.open} to grade` : ''),
    ...slots.map((slot) => slotLine(slot, now, several(lines))),
  ];
}

const NOT_GRADED: OpenGradings = { workers: 1, open: 0, durations: [0] };

/** What a run that grades has yet to grade, and how long that took so far. */
function openGradings(store: Store, run: RunRow, sealed: readonly TrialLine[]): OpenGradings {
  const { enabled, workers } = storedConfig(run).grading ?? {};
  if (enabled !== true) return NOT_GRADED;
  const open = sealed.filter(
    (l) => l.outcome === null && l.exit_reason !== null && isFinalReason(l.exit_reason),
  );
  return {
    workers: typeof workers === 'number' ? workers : 1,
    open: open.length,
    durations: gradingDurations(store, run.id),
  };
}

interface Several {
  readonly arms: boolean;
  readonly epochs: boolean;
}

const several = (lines: readonly TrialLine[]): Several => ({
  arms: lines.some((l) => l.arm !== lines[0]!.arm),
  epochs: lines.some((l) => l.epoch > 1),
});

function slotLine(slot: SlotRow, now: number, { arms, epochs }: Several): string {
  const since = slot.phase_offset_ms === null ? 0 : now - Date.parse(slot.started_at) - slot.phase_offset_ms;
  return `${String(slot.slot ?? '?').padStart(3)} ${inert(slot.instance_id)}${arms ? ` ${inert(slot.arm)}` : ''}${epochs ? ` ep ${slot.epoch}` : ''} step ${slot.steps} ${slot.phase ?? '-'} ${clock(since)}`;
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
    shorten(line, columns - 1),
  );
}

/** Resolves when the run has ended, or its process. */
export async function watchRun(options: WatchOptions): Promise<Watched> {
  const { store, write, redraw } = options;
  const now = options.now ?? Date.now;
  let drawn = 0;
  let missed = 0;
  for (;;) {
    const began = performance.now();
    const run = runById(store, options.run.id)!;
    const [head = '', spend = '', ...slots] = watchLines(store, run, now());
    const above = [head, spend, ...(options.also?.() ?? [])];
    const lines = redraw ? fitting(above, slots) : [...above, ...slots];
    // Back to the first line of the last picture, then clear what is below.
    write(`${redraw && drawn > 0 ? `\u001b[${drawn}A\u001b[J` : ''}${lines.join('\n')}\n`);
    drawn = lines.length;
    const failed = new Map(classCounts(store, run.id)).get('infra') ?? 0;
    if (!isLive(run) || options.signal?.aborted) return { run, gone: false, failed };
    // A run that begins or ends may be seen without a process for a moment.
    missed = options.gone?.() ? missed + 1 : 0;
    if (missed === 2) return { run, gone: true, failed };
    const everyMs = missed > 0 ? Math.min(options.everyMs, LOOK_AGAIN_MS) : options.everyMs;
    // A run of 50,000 trials takes a second to read: the picture of it takes at most a tenth of a processor.
    await pause(Math.max(everyMs, 9 * (performance.now() - began)), options.signal);
  }
}

/** How it ended, and what would go on with it. */
export function lastWord({ run, gone, failed }: Watched, root: string): string {
  const again = commandOn(root, `resume ${run.name}`);
  if (gone) return `no process works on ${run.name} any more; ${again} goes on`;
  if (run.status === 'complete' || run.status === 'failed') return `${run.name} has ended: ${run.status}`;
  const next =
    run.status === 'incomplete' && failed > 0
      ? `${commandOn(root, `resume ${run.name} --retry infra`)} runs again the ${failed} that failed`
      : `${again} goes on`;
  return `${run.name} has ended: ${run.status}; ${next}`;
}
