/** A client of an engine; without options, of the chosen one. */
import Docker from 'dockerode';
import { engineOptionsOf } from './chosenEngine.ts';

export const engineClient = (options?: Docker.DockerOptions): Docker =>
  new Docker(options ?? engineOptionsOf());
