/** The debug log of a run: JSON lines beside its exports, written at once so that a crash loses nothing. */
import { dirname } from 'node:path';
import pino from 'pino';
import { makeFolder } from '../../base/files/makeFolder.ts';
import type { Redactor } from '../../base/text/redact.ts';

export interface RunLog {
  write(level: 'debug' | 'warn', message: string, data?: Record<string, unknown>): void;
}

export function openLog(path: string, redactor: Redactor): RunLog {
  makeFolder(dirname(path));
  const destination = pino.destination({ dest: path, append: true, sync: true });
  destination.on('error', () => {});
  const logger = pino({ level: 'debug', base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  return {
    write(level, message, data = {}) {
      const clean = JSON.parse(redactor.json(JSON.stringify(data))) as object;
      try {
        logger[level](clean, redactor.text(message));
      } catch {
        // The disk may be full. The store reports that and stops the run; an error here would only hide it.
      }
    },
  };
}
