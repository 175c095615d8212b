/** The engine that is meant where nobody names one. The CLI says once how it is found; a library user gets dockerode's own default. */
import Docker from 'dockerode';

/** Options for a named engine (`environment.hosts`), or for the default one. */
export type EngineFinder = (host?: string) => Docker.DockerOptions | undefined;

let find: EngineFinder = () => undefined;

/** Called when a client is first needed, so that verbs without containers never look for an engine. May throw. */
export function chooseEngine(finder: EngineFinder): void {
  find = finder;
}

export const engineOptionsOf: EngineFinder = (host) => find(host);

export const engineClient = (options?: Docker.DockerOptions): Docker => new Docker(options ?? find());
