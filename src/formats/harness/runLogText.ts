/** run_instance.log: what was done with an instance, in the harness's line form. */

export interface RunLogLine {
  readonly at: Date;
  readonly level: 'INFO' | 'WARNING' | 'ERROR';
  readonly message: string;
}

/** `2026-03-21 10:25:14,902 - INFO - message`, in UTC. */
export const runLogText = (lines: readonly RunLogLine[]): string =>
  lines
    .map(({ at, level, message }) => {
      const [date, time] = at.toISOString().split('T') as [string, string];
      return `${date} ${time.slice(0, 12).replace('.', ',')} - ${level} - ${message}\n`;
    })
    .join('');
