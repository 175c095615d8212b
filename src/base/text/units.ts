/** Sizes and durations as people write them in a configuration: 512m, 4g, 2h, 90. */

const SIZE: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};
const SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86400 };

/** Bytes; 0 means no limit. */
export function parseSize(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?\s*$/i.exec(text);
  if (!match) throw new Error(`"${text}" is not a size: write bytes, or a number with k, m, g or t, e.g. 4g`);
  return Math.round(Number(match[1]) * SIZE[match[2]!.toLowerCase()]!);
}

/** Seconds; 0 means no limit. */
export function parseDuration(value: string | number): number {
  if (typeof value === 'number') return value;
  const match = /^\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*$/i.exec(value);
  if (!match)
    throw new Error(`"${value}" is not a duration: write seconds, or a number with s, m, h or d, e.g. 2h`);
  return Number(match[1]) * SECONDS[match[2]!.toLowerCase()]!;
}

const scaled = (bytes: number, units: readonly string[]): string => {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit]}`;
};

/** 1536 → 1.5 KB, for messages about commands and output. */
export const formatSize = (bytes: number): string => scaled(bytes, ['bytes', 'KB', 'MB', 'GB', 'TB']);

/** 268435456 → 256 MiB, for messages about limits. */
export const formatLimit = (bytes: number): string => scaled(bytes, ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']);

/** "0.42 GB", "12.3 GB" */
export const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(bytes < 1e9 ? 2 : 1)} GB`;
