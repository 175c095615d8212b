/**
 * Named points at which a test kills this process for real (SIGKILL), to see that nothing is lost there. Armed by the command line
 * through an environment variable; unarmed it is one comparison.
 */
export const CRASH_POINTS = [
  'after_lease',
  'after_attempt_began',
  'after_container_started',
  'call_began',
  'call_ended',
  'command_recorded',
  'before_capture',
  'before_seal',
  'after_seal',
  'before_export',
  'graded',
] as const;
type CrashPoint = (typeof CRASH_POINTS)[number];

let armed: { point: string; passes: number } | null = null;

/** "before_seal" or "before_seal:3" for the third time it is passed. */
export function armCrash(spec: string | undefined): void {
  if (!spec) return;
  const [point = '', times = '1'] = spec.split(':');
  armed = { point, passes: Number(times) };
}

export function crashPoint(point: CrashPoint): void {
  if (armed === null || armed.point !== point) return;
  armed.passes -= 1;
  if (armed.passes <= 0) process.kill(process.pid, 'SIGKILL');
}
