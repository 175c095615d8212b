/** The exit code that an observation shows: what other tools ran was imported with its texts alone. */

/** As mini-swe-agent shows it, in both of its versions. */
const SHOWN = /^\s{0,8}(?:Observation:\s{0,4})?(?:<returncode>|\{"returncode": )(-?\d{1,5})[<,}]/;

/** `head`: the first characters of a message; null where they show no exit code. */
export function shownExit(head: string): number | null {
  const code = SHOWN.exec(head)?.[1];
  return code === undefined ? null : Number(code);
}
