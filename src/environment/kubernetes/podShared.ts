/** Parts that all pods of one factory share. */
import type { Turnstile } from '../../base/async/room.ts';
import type { FactoryParts } from '../container/containerFactory.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import type { ProgramSpools } from '../programs/packageTar.ts';
import type { Program } from '../programs/program.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterConfig } from './clusterConfig.ts';

export interface PodOptions {
  readonly quietEnv?: boolean | undefined;
  readonly snapshot?: boolean | undefined;
  readonly capAdd?: readonly string[] | undefined;
  /** Pods have the relay of an agent that brings its own program. */
  readonly relay?: boolean | undefined;
  /** The program at PROGRAM_FOLDER in every pod of the factory, read-only; with `relay` alone. */
  readonly program?: Program | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** How long the end waits for pods that are not removed. */
  readonly graceMs?: number | undefined;
}

export interface PodShared {
  readonly cluster: Cluster;
  readonly config: EnvironmentConfig;
  readonly clusterConfig: ClusterConfig;
  readonly options: PodOptions;
  readonly inTurn: FactoryParts['inTurn'];
  /** Programs on their way into pods. */
  readonly filling: Turnstile;
  readonly spools: ProgramSpools;
  readonly watch: EngineWatch;
  /** Removes a pod, now or as soon as the API server answers. Never rejects. */
  discard(name: string): Promise<void>;
}
