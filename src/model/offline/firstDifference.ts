const AROUND = 60;

/** The first place where two texts differ, with what stands around it. */
export function firstDifference(recorded: string, now: string): string {
  let at = 0;
  const end = Math.min(recorded.length, now.length);
  while (at < end && recorded[at] === now[at]) at += 1;
  const from = Math.max(0, at - AROUND);
  const cut = (text: string) => JSON.stringify(text.slice(from, at + AROUND).toWellFormed());
  return `differs at character ${at}: recorded ${cut(recorded)}, now ${cut(now)}`;
}
