/** The machine's facts for prompts of mini-swe-agent: Python's platform.uname(), without the name of the host. */
import { machine, release, type, version } from 'node:os';

export const unameVars = (): Readonly<Record<string, string>> => ({
  system: type(),
  release: release(),
  version: version(),
  machine: machine(),
});
