/** The debug log of a run: JSON lines beside its exports, written at once so that a crash loses nothing. */
import { dirname } from 'node:path';
import pino from 'pino';
import { makeFolder } from '../../base/files/makeFolder.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { RunEvent, RunListener } from '../events.ts';

export type Log = (level: 'debug' | 'info' | 'warn', message: string, data?: Record<string, unknown>) => void;

/** The lines that a person looks for: the start, the end of each trial and each grading, what held the run up, the end. */
export const logEvents =
  (log: Log): RunListener =>
  (event) => {
    const text = textOf(event);
    if (text !== null) log('info', text, { event });
  };

function textOf(event: RunEvent): string | null {
  switch (event.type) {
    case 'run_started':
      return `run ${event.run}: ${event.toDo} of ${event.planned} trials to do on ${event.slots} slots`;
    case 'trial_ended':
      return `${event.trial.instanceId} ${event.exitReason}`;
    case 'graded':
      return `${event.trial.instanceId} graded ${event.outcome}`;
    case 'paused':
    case 'resumed':
    case 'breaker':
    case 'stopping':
      return `${event.type}: ${event.reason}`;
    case 'control':
      return `${event.by} asked: ${[event.command, event.argument].filter(Boolean).join(' ')}; ${event.answer}`;
    case 'note':
      return event.text;
    case 'run_ended':
      return `run ${event.run} ended: ${event.status}`;
    default:
      return null;
  }
}

export function openLog(path: string, redactor: Redactor): Log {
  makeFolder(dirname(path));
  const destination = pino.destination({ dest: path, append: true, sync: true });
  destination.on('error', () => {});
  const logger = pino({ level: 'debug', base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  return (level, message, data = {}) => {
    const clean = JSON.parse(redactor.json(JSON.stringify(data))) as object;
    try {
      logger[level](clean, redactor.text(message));
    } catch {
      // The disk may be full. The store reports that and stops the run; an error here would only hide it.
    }
  };
}
