/** Binary files of Multimodal rows: fetched by us, laid into the container, and copied into the tree just before the tests. */
import type { Environment } from '../environment/environment.ts';
import { MARK } from './readLog.ts';
import type { Asset } from './specs/spec.ts';

export type FetchAsset = (url: string, signal?: AbortSignal) => Promise<Uint8Array>;

const FETCH_MS = 60_000;

export const fetchAsset: FetchAsset = async (url, signal) => {
  const deadline = AbortSignal.timeout(FETCH_MS);
  const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, deadline]) : deadline });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

const shellWord = (text: string) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The script with commands put in just before the line of the start marker. */
export function withRestore(script: string, commands: readonly string[]): string {
  if (commands.length === 0) return script;
  const lines = script.split('\n');
  const start = lines.findIndex((line) => line.includes(MARK.start));
  if (start < 0) return `${script}\n${commands.join('\n')}`;
  return [...lines.slice(0, start), ...commands, ...lines.slice(start)].join('\n');
}

export interface StagedAssets {
  readonly restore: readonly string[];
  /** One sentence for each file that could not be fetched; the tests run without it, as in the harness. */
  readonly missing: readonly string[];
}

export async function stageAssets(
  environment: Environment,
  assets: readonly Asset[],
  fetchOne: FetchAsset,
  signal?: AbortSignal,
): Promise<StagedAssets> {
  const restore: string[] = [];
  const missing: string[] = [];
  if (assets.length > 0) await environment.execute('mkdir -p /image_assets');
  for (const { path, url } of assets) {
    const flat = path.replaceAll('/', '__');
    try {
      if (url === undefined) throw new Error('the row gives no address');
      await environment.putFile(`/image_assets/${flat}`, await fetchOne(url, signal));
      restore.push(
        `mkdir -p $(dirname ${shellWord(path)}) && cp ${shellWord(`/image_assets/${flat}`)} ${shellWord(path)}`,
      );
    } catch (error) {
      signal?.throwIfAborted();
      missing.push(`asset ${path} is missing: ${(error as Error).message}`);
    }
  }
  return { restore, missing };
}
