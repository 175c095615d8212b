/** The progress of a package: a bar on a terminal where its size is known, a line drawn again where it is not, and lines elsewhere. */
import { Presets, SingleBar } from 'cli-progress';
import { inert } from '../../base/text/inert.ts';
import type { TellGrowth } from '../../run/agents/registryClient.ts';
import { inCi, say } from './context.ts';
import { clip } from './progressState.ts';

const LINE_MS = 10_000;
/** A registry that sends nothing for so long is told about. */
const QUIET_MS = 15_000;
const BAR = 24;
/** Columns of the bar and its share, beside the name of a package and how much has come. */
const BESIDE = BAR + 10;

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(0);

export function fetchProgress() {
  const drawn = process.stderr.isTTY === true && !inCi();
  const width = (): number => (process.stderr.columns || 80) - 1;
  let bar: SingleBar | undefined;
  let told = Date.now();
  let last = { what: '', bytes: 0, at: Date.now() };

  const quietly = (): string => {
    const quiet = Date.now() - last.at;
    return quiet < QUIET_MS ? '' : `, nothing came for ${Math.round(quiet / 1000)} s`;
  };
  const draw = (what: string, bytes: number, total: number): void => {
    if (!bar) {
      process.stderr.write('\r\x1b[2K');
      bar = new SingleBar(
        {
          ...{
            stream: process.stderr,
            hideCursor: true,
            clearOnComplete: true,
            linewrap: null,
            barsize: BAR,
          },
          ...{ format: '{what} {bar} {percentage} %  {done}', fps: 10 },
        },
        Presets.shades_classic,
      );
      bar.start(total, 0, { what: '', done: '' });
    }
    const done = `${megabytes(bytes)} of ${megabytes(total)} MB${quietly()}`;
    const name = inert(what);
    const room = Math.max(12, width() - BESIDE - done.length);
    bar.update(bytes, { what: clip(name, Math.min(name.length, room)), done });
  };
  const clear = (): void => {
    bar?.stop();
    bar = undefined;
    if (drawn) process.stderr.write('\r\x1b[2K');
  };
  const show: TellGrowth = (what, bytes, total) => {
    if (last.what !== what || last.bytes !== bytes) last = { what, bytes, at: Date.now() };
    // A cache holds a little more than the package.
    const come = total === undefined ? bytes : Math.min(bytes, total);
    if (drawn && total !== undefined) return draw(what, come, total);
    const of = total === undefined ? ' MB so far' : ` of ${megabytes(total)} MB`;
    const text = `${inert(what)}: ${megabytes(come)}${of}${quietly()}`;
    if (drawn) process.stderr.write(`\r\x1b[2K${clip(text, width())}`);
    else if (Date.now() - told >= LINE_MS) {
      told = Date.now();
      say(text);
    }
  };
  return { show, clear };
}
