/** Pulls of a Docker factory that is used without image handling: one try each, without logins, mirrors, a disk floor or a ledger. */
import type Docker from 'dockerode';
import { dockerImageEngine } from './dockerImageEngine.ts';
import { type EnsureImage, ensureBy } from './ensureImage.ts';
import { imagesConfigSchema } from './imagesConfig.ts';
import { systemPullClock } from './pull/pullClock.ts';
import type { StageOptions } from './pull/pullJobs.ts';
import { createPullStage } from './pull/pullStage.ts';
import { pullThrottle } from './pull/pullThrottle.ts';

export function createFactoryPulls(
  docker: Docker,
  options: Pick<StageOptions, 'policy' | 'platform' | 'stallMs'>,
): { ensure: EnsureImage; close(): Promise<void> } {
  const stage = createPullStage({
    ...options,
    engine: dockerImageEngine(docker),
    config: imagesConfigSchema.parse({ attempts: 1, ahead: 0, rate_limit_patience_seconds: 0 }),
    clock: systemPullClock,
    throttle: pullThrottle({ pulls: 0, windowMs: 0 }),
    loginOf: async () => undefined,
    askReset: async () => undefined,
  });
  const ensure = ensureBy(stage);
  return {
    async ensure(image, more) {
      if (options.policy === 'always') stage.forget(image);
      try {
        return await ensure(image, more);
      } catch (error) {
        more?.signal?.throwIfAborted();
        // It may be built or pulled by hand before the next start.
        stage.forget(image);
        throw error;
      }
    },
    close: () => stage.close(),
  };
}
