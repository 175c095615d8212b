/** How the start of a container gets its image onto the engine. */
import type { PullStage } from './pull/pullStage.ts';

export interface ImageFacts {
  readonly id: string;
  /** Repo digest, else the image id. */
  readonly digest: string;
  readonly architecture: string;
  readonly pulled: boolean;
}

/** Resolves to what an engine has under that name, however it got there. */
export type EnsureImage = (
  image: string,
  options?: { signal?: AbortSignal | undefined },
) => Promise<ImageFacts>;

export const ensureBy =
  (stage: PullStage): EnsureImage =>
  async (image, { signal } = {}) => {
    const { id, digest, architecture, pulled } = await stage.ensure(image, signal);
    return { id, digest, architecture, pulled };
  };
