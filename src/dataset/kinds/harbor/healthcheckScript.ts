/** The healthcheck of a task as one command, run once after the start: it ends when the environment is ready, or fails. */

export interface Healthcheck {
  readonly command: string;
  readonly interval_sec: number;
  readonly timeout_sec: number;
  readonly start_period_sec: number;
  readonly start_interval_sec: number;
  readonly retries: number;
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Failures in the start period do not count, as in Docker. */
export function healthcheckScript(check: Healthcheck): string {
  const { command, interval_sec, timeout_sec, start_period_sec, start_interval_sec, retries } = check;
  return [
    `check() { if command -v timeout >/dev/null 2>&1; then timeout ${Math.ceil(timeout_sec)} sh -c "$1"; else sh -c "$1"; fi; }`,
    `began=$(date +%s); failed=0`,
    `while :; do`,
    `  check ${quoted(command)} && exit 0`,
    `  if [ $(($(date +%s) - began)) -lt ${Math.ceil(start_period_sec)} ]; then sleep ${start_interval_sec}; continue; fi`,
    `  failed=$((failed + 1))`,
    `  if [ $failed -ge ${retries} ]; then echo "the healthcheck of the task failed ${retries} times"; exit 1; fi`,
    `  sleep ${interval_sec}`,
    `done`,
  ].join('\n');
}
