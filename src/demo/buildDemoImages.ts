/** Builds the images of the bundled dataset; what is there already is found by the hash of its content. */
import { type BaseImage, ensureBase, type Say } from './baseImage.ts';
import { readDemoRows } from './demoDataset.ts';
import { ensureInstanceImages } from './instanceImages.ts';

export interface BuiltDemo {
  readonly base: BaseImage;
  /** Names of the images that were built now. */
  readonly built: readonly string[];
  readonly images: number;
}

/** Throws an Error that says what this machine lacks. */
export async function buildDemoImages(say: Say, rebuild = false): Promise<BuiltDemo> {
  const base = await ensureBase(say, rebuild);
  const rows = readDemoRows();
  return { base, built: await ensureInstanceImages(rows, rebuild), images: rows.length };
}
