/** The engine that is meant where nobody names one. The CLI says once how it is found; a library user gets dockerode's own default. */
import { AsyncLocalStorage } from 'node:async_hooks';
import Docker from 'dockerode';

/** Options for a named engine (`environment.hosts`), or for the default one. */
export type EngineFinder = (host?: string) => Docker.DockerOptions | undefined;

let ofProcess: EngineFinder = () => undefined;
const ofWork = new AsyncLocalStorage<EngineFinder>();

/** For the whole process. Called when a client is first needed, so that verbs without containers never look for an engine. May throw. */
export function chooseEngine(finder: EngineFinder): void {
  ofProcess = finder;
}

/**
 * For this work and all that it leads to, modules of the user's among it, which make clients too and are given no variables. So two
 * runs of one process can be on different engines.
 */
export const withEngine = <T>(finder: EngineFinder, work: () => T): T => ofWork.run(finder, work);

export const engineOptionsOf: EngineFinder = (host) => (ofWork.getStore() ?? ofProcess)(host);

export const engineClient = (options?: Docker.DockerOptions): Docker =>
  new Docker(options ?? engineOptionsOf());
