/** Adds up the engine's pull events, layer by layer. */
import type { PullEvent } from '../imageEngine.ts';

export interface PullProgress {
  readonly downloadedBytes: number;
  /** Of the layers whose size is known so far; grows while the engine still asks. */
  readonly totalBytes: number;
  readonly layersDone: number;
  readonly layers: number;
}

interface Layer {
  current: number;
  total: number;
  done: boolean;
}

/** Lines of the engine that show no work: while it only repeats these, the pull stands still. */
const IDLE = /^(Retrying in|Waiting)/;

export function pullProgress() {
  const layers = new Map<string, Layer>();
  return {
    /** True when the event shows that something moved. */
    add({ layer, status, current, total }: PullEvent): boolean {
      if (layer === undefined || /^(Pulling from|Digest|Status)/.test(status)) return true;
      if (IDLE.test(status)) {
        if (!layers.has(layer)) layers.set(layer, { current: 0, total: 0, done: false });
        return false;
      }
      const known = layers.get(layer) ?? { current: 0, total: 0, done: false };
      if (status === 'Downloading') {
        known.total = total ?? known.total;
        known.current = current ?? known.current;
      }
      if (status === 'Download complete') known.current = known.total;
      if (status === 'Pull complete' || status === 'Already exists') known.done = true;
      layers.set(layer, known);
      return true;
    },
    now(): PullProgress {
      const all = [...layers.values()];
      return {
        downloadedBytes: all.reduce((sum, layer) => sum + layer.current, 0),
        totalBytes: all.reduce((sum, layer) => sum + layer.total, 0),
        layersDone: all.filter((layer) => layer.done).length,
        layers: all.length,
      };
    },
  };
}
