/** The operations on a container engine that image handling needs. */

export interface LocalImage {
  readonly id: string;
  readonly tags: readonly string[];
  /** `repository@sha256:…`, as the registry knows it. */
  readonly digests: readonly string[];
  readonly os: string;
  readonly architecture: string;
  /** Bytes on disk, layers shared with other images included. */
  readonly size: number;
  readonly layers: readonly string[];
}

/** One line of the engine's pull stream. */
export interface PullEvent {
  readonly layer?: string | undefined;
  readonly status: string;
  readonly current?: number | undefined;
  readonly total?: number | undefined;
}

export interface PullRequest {
  readonly registry: string;
  readonly repository: string;
  readonly tagOrDigest: string;
  readonly platform?: string | undefined;
  readonly login?: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  readonly onEvent: (event: PullEvent) => void;
}

export interface ListedImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly size: number;
  /** Containers made from it, running or not. */
  readonly containers: number;
  /** Id of the image whose history was sealed in this one; it keeps that image's layers. */
  readonly sealedFrom: string | undefined;
}

export interface ImageEngine {
  info(): Promise<{
    id: string;
    os: string;
    architecture: string;
    rootDir: string;
    /** Undefined where the engine does not tell. */
    memoryBytes?: number | undefined;
  }>;
  inspect(name: string): Promise<LocalImage | undefined>;
  list(): Promise<ListedImage[]>;
  /** Resolves when the engine says that the image is complete; rejects with the engine's words. */
  pull(request: PullRequest): Promise<void>;
  tag(source: string, name: string): Promise<void>;
  /** Takes the name away, and the image with its last name. Never forced: an image in use stays. */
  remove(name: string): Promise<{ removed: boolean; reason?: string }>;
}
