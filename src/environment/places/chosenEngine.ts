/** The engine to use where nobody names one. The CLI sets once how it is found; a library user gets dockerode's own default. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';
import type Docker from 'dockerode';

/** Options of a client; undefined leaves the default socket to dockerode. */
type EngineFinder = () => Docker.DockerOptions | undefined;

let ofProcess: EngineFinder = () => undefined;
const ofWork = new AsyncLocalStorage<EngineFinder>();

/** The finder of the whole process. Called when a client is first needed, so that verbs without containers never look for an engine. May throw. */
export function chooseEngine(finder: EngineFinder): void {
  ofProcess = finder;
}

/**
 * The finder of this work and everything it calls, including modules of the user that make clients without being given variables. So two
 * runs of one process can use different engines.
 */
export const withEngine = <T>(finder: EngineFinder, work: () => T): T => ofWork.run(finder, work);

const load = createRequire(import.meta.url);

export type EngineClient = Docker;

/** A client of an engine; without options, of the chosen one. The package is loaded with the first: what runs on this machine alone needs none. */
export function engineClient(options?: Docker.DockerOptions): Docker {
  const Client = load('dockerode') as typeof Docker;
  return new Client(options ?? (ofWork.getStore() ?? ofProcess)());
}
