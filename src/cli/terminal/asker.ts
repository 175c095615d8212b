/** Who asks something of a run that works: it is in the events of the run. */
import { hostname, userInfo } from 'node:os';

/** A user without a name, as in some containers, has a number. */
export function asker(): string {
  try {
    return `${userInfo().username}@${hostname()} (terminal)`;
  } catch {
    return `uid ${process.getuid?.() ?? '?'}@${hostname()} (terminal)`;
  }
}
