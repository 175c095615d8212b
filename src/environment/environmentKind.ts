/**
 * The rest of the program's questions to a kind of environment before one is made. A kind is one folder and one line in environments.ts. The
 * module of a kind is light: it imports statically only its configuration, and loads the rest with the first environment.
 */
import type { z } from 'zod';
import type { ContainerNeeds } from '../base/containerNeeds.ts';
import type { Finding } from '../base/finding.ts';
import type { EnvironmentFactory, KindCapabilities } from './environment.ts';
import type { EnvironmentConfig } from './environmentConfig.ts';
import type { EngineClient } from './places/chosenEngine.ts';
import type { EngineWatch } from './places/engineWatch.ts';
import type { EnsureImage } from './places/imageJobs.ts';
import type { Program } from './programs/program.ts';

export interface EnvironmentKind {
  /** `environment.environment_class`. */
  readonly name: string;
  /** As sentences name it. */
  readonly title: string;
  /** The user's keys below `environment.<name>`. */
  readonly ownKeys?: z.ZodType;
  /** Commands run in the image of the instance. */
  readonly inImages: boolean;
  /** Commands run beside this process, with the files and the network of this machine. */
  readonly onThisMachine: boolean;
  /** Users of a container engine: the environments themselves, whose images are brought there first, gradings alone, or nothing. */
  readonly engines: 'all' | 'gradings' | 'none';
  /** Arms of the kind are graded in it too; where it is false, in the default environment. */
  readonly grades: boolean;
  readonly capabilities: KindCapabilities;
  /** Why it cannot give a task what that asks for, those among it, as a clause; undefined where it can. Absent: it gives all. */
  taskRefusal?(
    needs: ContainerNeeds,
    config: Partial<Pick<EnvironmentConfig, 'network'>>,
  ): Promise<string | undefined>;
  /** Rejects when the configuration leads nowhere. */
  create(config: EnvironmentConfig, options: EnvironmentOptions): Promise<EnvironmentFactory>;
  /** Whether a run in it can begin, for each arm: `run` refuses by it, and `doctor` shows it. Makes nothing. */
  findings?(arms: readonly ConfiguredArm[]): Promise<readonly Finding[]>;
  /** An engine's refusals of such an environment, as clauses. Makes nothing. */
  refusals?(
    engine: EngineClient,
    config: EnvironmentConfig,
    options?: Pick<EnvironmentOptions, 'capAdd'>,
  ): Promise<readonly string[]>;
  /** Removes leftovers of dead processes, where these are not on engines: once for each place of the configurations. */
  reap?(
    environments: readonly EnvironmentConfig[],
    how: { readonly dryRun: boolean },
  ): Promise<readonly Reaped[]>;
}

export interface ConfiguredArm {
  readonly name: string;
  readonly environment: EnvironmentConfig;
}

/** A thing that a process has left, with its owner by name. */
export interface Leftover {
  readonly name: string;
  readonly run: string;
  readonly instance: string;
  readonly host: string;
  readonly pid: number;
}

export interface Reaped {
  /** As sentences name it: "pod". */
  readonly what: string;
  readonly place: string;
  /** Leftovers of owners that are provably dead; `removed` and `failed` are parts of it. */
  readonly orphans: readonly Leftover[];
  readonly removed: readonly Leftover[];
  readonly failed: readonly Leftover[];
  /** Leftovers of owners that live, or cannot be judged from here. */
  readonly kept: readonly Leftover[];
  /** Why nothing is known of the place. */
  readonly silent?: string;
}

/** Options of the program that makes environments, beside the user's configuration. A kind takes those that concern it. */
export interface EnvironmentOptions {
  readonly onWarning?: ((message: string) => void) | undefined;
  /** How long the end waits for containers that could not be removed before. */
  readonly graceMs?: number | undefined;
  /** The watch of the engine; default: one of the factory's own. */
  readonly watch?: EngineWatch | undefined;
  /** How images come onto the engine; default: each start sees to its own. */
  readonly images?: EnsureImage | undefined;
  /** The program at PROGRAM_FOLDER in every environment, read-only. */
  readonly program?: Program | undefined;
  /** Environments will be asked to `listen`: a place that cannot add a relay later starts with one. */
  readonly listens?: boolean | undefined;
  /** false leaves the environment's variables as the image and the config make them (grading runs under the harness's own). */
  readonly quietEnv?: boolean | undefined;
  /** false skips the start snapshot; capturePatch then reports `invalid`. For graders, which never capture. */
  readonly snapshot?: boolean | undefined;
  /** Capabilities beyond the usual set. */
  readonly capAdd?: readonly string[] | undefined;
  /** Folder that relative module paths start from; default: the working directory. */
  readonly baseDir?: string;
}
