/** `swebatch view`: the web page over a results root, live until interrupted, or written as static files. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { z } from 'zod';
import { plural } from '../../base/text/numbers.ts';
import { recogniseSource } from '../../formats/formats.ts';
import { openKnown } from '../../results/import/openSource.ts';
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { writeBundle } from '../../viewer/bundle.ts';
import { databaseOf } from '../../viewer/laterRecord.ts';
import { startViewer } from '../../viewer/server.ts';
import { type Args, defineVerb, flags, json, output, string } from '../flags/verb.ts';
import { EXIT, env, printResult, say } from '../terminal/context.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

const viewFlags = flags({
  results: {
    ...string('results root, or a file or folder of another runner; default: -o'),
    place: 'optional',
  },
  output,
  port: {
    type: 'number',
    default: 7580,
    check: z.number().int().min(0).max(65_535),
    describe: '0 picks a free one',
  },
  host: {
    ...string('other than loopback, reading requires the token too: SWEBATCH_VIEW_TOKEN, or a generated one'),
    default: '127.0.0.1',
    check: z.string().min(1),
  },
  bundle: string('write static files into this folder instead; any web server can show them'),
  run: { ...string('with --bundle: only this run (repeat for more)'), list: true },
  json,
});

export const viewVerb = defineVerb({
  name: 'view',
  describe: 'look at runs, trajectories and comparisons in a browser',
  flags: viewFlags,
  examples: [
    ['$0 view', 'the runs of ./results, live'],
    ['$0 view jobs/2026-01-31', 'what another runner left; nothing is written beside it'],
    ['$0 view nightly --bundle public', 'the same as static files'],
  ],
  async run(args) {
    const asked = args.results ?? args.output;
    if (args.results !== undefined && !existsSync(args.results))
      throw new UserError(`there is no such folder: ${args.results}`, {
        hint: 'name a results root, or what another runner left; a root that the first run will make is named with -o',
      });
    // An empty folder, or what -o names, may be a root that the first run will make.
    const isRoot =
      asked === undefined ||
      (args.results === undefined
        ? (await recogniseSource(asked)) === null
        : args.bundle === undefined && isEmpty(args.results));
    const foreign = isRoot ? null : await openKnown(asked, thisProcess());
    const results = foreign?.root ?? resultsRoot(asked);
    if (statSync(results, { throwIfNoEntry: false })?.isFile())
      throw new UserError(`${results} is a file`, {
        hint: 'name the results root, which is the folder that holds swebatch.db, or what another runner left',
      });
    if (args.bundle !== undefined) return bundle(results, args.bundle, args.run, args.json);
    if (args.run !== undefined) throw new UserError('--run needs --bundle; the live page shows every run');
    return serve(results, args);
  },
});

const isEmpty = (path: string): boolean => statSync(path).isDirectory() && readdirSync(path).length === 0;

function bundle(
  results: string,
  dir: string,
  selectors: readonly string[] | undefined,
  json: boolean,
): number {
  const runs = selectors && namesOf(results, selectors);
  const written = writeBundle(results, dir, runs ? { runs } : {});
  printResult(json, { dir, ...written }, () => dir);
  say(
    `${plural(written.files, 'file')}, ${(written.bytes / 1e6).toFixed(1)} MB; serve them with any web server`,
  );
  return EXIT.done;
}

function namesOf(results: string, selectors: readonly string[]): string[] {
  using store = openForReading(results);
  return selectors.map((selector) => requireRun(store, selector).name);
}

/** A viewer ends by being stopped, so an interrupt is not a failure here. */
async function serve(results: string, args: Args<typeof viewFlags>): Promise<number> {
  const token = env('SWEBATCH_VIEW_TOKEN');
  const viewer = await startViewer({
    results,
    host: args.host,
    port: args.port,
    ...(token ? { token } : {}),
  }).catch((error: unknown) => {
    throw error instanceof Error && error.name === 'Error' ? new UserError(error.message) : error;
  });
  printResult(args.json, { url: viewer.controlUrl }, () => viewer.controlUrl);
  if (!existsSync(databaseOf(results)))
    say(`there is no run in ${results} yet; the page shows the first one when it starts`);
  say('its token lets the page change a run that works: keep it to yourself; press Ctrl-C to stop');
  await new Promise<void>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done());
  });
  await viewer.close();
  return EXIT.done;
}
