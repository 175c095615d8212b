/** What a program sets when it makes a Docker factory, beside the user's configuration. */
import type Docker from 'dockerode';
import type { EngineWatch } from '../places/engineWatch.ts';
import type { EnsureImage } from '../places/pullStage.ts';
import type { Program } from '../programs/program.ts';

export interface DockerFactoryOptions {
  /** dockerode's own options (socketPath, host, port...); default: DOCKER_HOST or the standard socket. */
  readonly docker?: Docker.DockerOptions;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Of that engine; default: one of the factory's own, which waits half a minute. */
  readonly watch?: EngineWatch | undefined;
  /** How long an engine is waited for by a factory without a watch of its own; default: half a minute. */
  readonly outageMs?: number;
  /** Who brings images here, with a pull policy of its own; default: this factory, by the configured policy. */
  readonly images?: EnsureImage;
  /** false leaves the container's environment as the image and the config make it (grading runs under the harness's own). */
  readonly quietEnv?: boolean | undefined;
  /** false skips the start snapshot; capturePatch then reports `invalid`. For graders, which never capture. */
  readonly snapshot?: boolean | undefined;
  /** Capabilities beyond Docker's own set. */
  readonly capAdd?: readonly string[] | undefined;
  /** What every container of the factory has at PROGRAM_FOLDER, read-only. */
  readonly program?: Program | undefined;
  /** Containers created or started at one time. */
  readonly concurrentStarts?: number;
  /** Containers started ahead of their slot. */
  readonly maxPrepared?: number;
  /** Milliseconds between looks at the size of the writable layer. */
  readonly diskPollMs?: number;
}
