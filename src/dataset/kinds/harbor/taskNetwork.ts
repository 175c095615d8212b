/** Which network a phase of a task has. */
import type { HarborTask } from './harborTask.ts';
import type { TomlEnvironment } from './taskToml.ts';

/** The phase's own policy goes before that of its environment; the format's default is the open network. */
export function networkOf(
  { network_mode, allow_internet }: TomlEnvironment,
  phase: { network_mode?: string | undefined },
): HarborTask['network'] {
  const mode = phase.network_mode ?? network_mode ?? (allow_internet === false ? 'no-network' : 'public');
  return mode === 'public' ? 'public' : 'none';
}
