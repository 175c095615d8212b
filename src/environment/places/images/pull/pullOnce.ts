/** One try of one pull from one registry, cut when nothing moves. */
import { startTimer } from '../../../../base/async/timer.ts';
import type { ImageReference } from '../../../../base/imageReference.ts';
import { readFault } from '../../engines/dockerFault.ts';
import type { ImageEngine } from '../imageEngine.ts';
import { classifyPullMessage, type PullFailureKind } from './pullFailure.ts';
import { type PullProgress, pullProgress } from './pullProgress.ts';

export interface PullOnceOptions {
  readonly engine: ImageEngine;
  readonly reference: ImageReference;
  readonly platform?: string | undefined;
  readonly login?: Readonly<Record<string, string>> | undefined;
  /** 0 waits for ever. */
  readonly stallMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
}
export type PullOnceResult =
  | { readonly ok: true; readonly progress: PullProgress }
  | { readonly ok: false; readonly kind: PullFailureKind | 'cancelled'; readonly message: string };

export async function pullOnce(options: PullOnceOptions): Promise<PullOnceResult> {
  const { engine, reference, platform, login, stallMs, signal, onProgress } = options;
  const progress = pullProgress();
  const stall = new AbortController();
  const timer = startTimer(stallMs, () => stall.abort(new Error('stalled')));
  try {
    await engine.pull({
      registry: reference.registry,
      repository: reference.repository,
      tagOrDigest: reference.digest ?? reference.tag ?? 'latest',
      platform,
      login,
      signal: AbortSignal.any([signal, stall.signal]),
      onEvent: (event) => {
        if (progress.add(event)) timer.restart();
        onProgress(progress.now());
      },
    });
    return { ok: true, progress: progress.now() };
  } catch (error) {
    if (signal.aborted) return { ok: false, kind: 'cancelled', message: 'cancelled' };
    if (stall.signal.aborted) {
      const { downloadedBytes, totalBytes } = progress.now();
      const message = `nothing moved for ${stallMs / 1000} s, at ${mb(downloadedBytes)} of ${mb(totalBytes)} MB`;
      return { ok: false, kind: 'stalled', message };
    }
    const message = readFault(error).text;
    return { ok: false, kind: classifyPullMessage(message), message };
  } finally {
    timer.cancel();
  }
}

const mb = (bytes: number) => (bytes / 1e6).toFixed(1);
