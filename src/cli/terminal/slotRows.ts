/** The rows of slots: as many as fit, with arm and epoch where there are several; those that do not fit are counted. */
import { inert } from '../../base/text/inert.ts';
import { formatCost } from '../../money.ts';
import { clip, type SlotState, type State } from './progressState.ts';
import { clock } from './timeLeft.ts';

/** Widths of what names a trial; 0 leaves it out. */
interface Names {
  readonly id: number;
  readonly arm: number;
  readonly epoch: number;
}

const ID = 32;
const PLAIN: Names = { id: ID, arm: 0, epoch: 0 };
/** Number, step, phase and cost of a slot. */
const BESIDE = 4 + 10 + 17 + 8;
const SHORTEST = 12;

/** Ids differ at their ends, so the left is cut, as mini-swe-agent does. */
const fitId = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `…${text.slice(text.length - width + 1)}`;

/** The id takes what the terminal has left. */
function namesIn({ arms, epochs, widest }: State, width: number): Names {
  const room = Math.max(ID, width - BESIDE);
  const epoch = epochs > 1 ? String(epochs).length + 4 : 0;
  const arm = arms > 1 ? Math.min(widest.arm, Math.floor(room / 3)) + 1 : 0;
  return { id: Math.max(SHORTEST, Math.min(room - arm - epoch, Math.max(ID, widest.id))), arm, epoch };
}

export function slotText(slot: SlotState | undefined, names: Names = PLAIN): string {
  if (!slot) return 'idle';
  const { label } = slot;
  const arm = names.arm > 0 ? ` ${clip(inert(label.arm), names.arm - 1)}` : '';
  const epoch = names.epoch > 0 ? ` ep ${label.epoch}`.padEnd(names.epoch) : '';
  const where = `${slot.phase} ${clock(Date.now() - slot.phaseSince)}`;
  return `${fitId(inert(label.instanceId), names.id)}${arm}${epoch} step ${String(slot.step).padStart(3)} ${clip(where, 16)} ${formatCost(slot.costNano)}`;
}

/** Up to `rows` lines for `workers` slots. Where they do not all fit, those at work come first. */
export function slotRows(state: State, workers: number, rows: number, width: number): string[] {
  const working = [...state.slots.keys()].sort((a, b) => a - b);
  // After "ctl RUN workers N" a slot with a number above N may still be at work.
  const idle = Array.from({ length: workers }, (_, i) => i + 1)
    .filter((slot) => !state.slots.has(slot))
    .slice(0, Math.max(0, workers - working.length));
  const all = working.length + idle.length;
  const room = all > rows ? rows - 1 : all;
  const shown = [...working, ...idle].slice(0, room).sort((a, b) => a - b);
  const names = namesIn(state, width);
  const lines = shown.map((slot) => `${String(slot).padStart(3)} ${slotText(state.slots.get(slot), names)}`);
  if (room === all) return lines;
  return [...lines, `    ${all - room} more slots, ${Math.max(0, working.length - room)} of them at work`];
}
