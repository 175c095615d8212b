/** The pulls of a run as text: one line each with a bar, and when a registry allows more. Pure. */
import type { RunEvent } from '../../run/events.ts';

export type Pulls = Extract<RunEvent, { type: 'pulls' }>;

const BAR = 16;
const mb = (bytes: number) => (bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0);

function bar(done: number, total: number): string {
  const full = total > 0 ? Math.min(BAR, Math.floor((BAR * done) / total)) : 0;
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`;
}

/** Names differ at their ends; the registry matters least. */
const shortName = (image: string): string => image.split('/').slice(-2).join('/');

const left = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000));
  return s >= 3600
    ? `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
    : s >= 60
      ? `${Math.floor(s / 60)} min ${s % 60} s`
      : `${s} s`;
};

/** "19:05:12Z, in 4 min 12 s" */
const untilText = (until: number, now: number): string =>
  `${new Date(until).toISOString().slice(11, 19)}Z, in ${left(until - now)}`;

/** At most `most` lines; empty when nothing is pulled and nothing waits. */
export function pullLines(pulls: Pulls | undefined, now: number, most: number): string[] {
  if (!pulls) return [];
  const waits = pulls.waiting > 0 ? ` · ${pulls.waiting} waiting` : '';
  const paused = pulls.paused.map(({ host, reason, until }) => {
    const why =
      reason === 'rate_limited' ? 'the registry refuses more' : 'the budget of the window is used up';
    return `pulls pause${host === undefined ? '' : ` on ${host}`}, ${why}: until ${untilText(until, now)}`;
  });
  const active = pulls.active.map(({ image, host, downloadedBytes, totalBytes }) => {
    const size = totalBytes > 0 ? `${mb(downloadedBytes)} of ${mb(totalBytes)} MB` : 'asking';
    return `pull ${bar(downloadedBytes, totalBytes)} ${size} ${shortName(image)}${host === undefined ? '' : ` on ${host}`}`;
  });
  const lines = [...paused, ...active];
  if (lines.length === 0) return pulls.waiting > 0 ? [`pulls: ${pulls.waiting} waiting`] : [];
  const shown = lines.slice(0, most);
  const more = lines.length - shown.length;
  shown[shown.length - 1] += `${more > 0 ? ` · ${more} more` : ''}${waits}`;
  return shown;
}
