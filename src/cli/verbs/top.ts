/** `swebatch top`: slots, engines, limiters and spend of a run as it works. */
import { inert } from '../../base/text/inert.ts';
import { workerOn } from '../../run/control/runLock.ts';
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { type LiveState, readLiveState } from '../../store/live/controls.ts';
import { namedRun, output } from '../flags/commonFlags.ts';
import { defineVerb, flags } from '../flags/verb.ts';
import { EXIT, inCi, printData, say } from '../terminal/context.ts';
import { lastWord, watchRun } from '../terminal/watch.ts';

export const topVerb = defineVerb({
  name: 'top',
  describe: 'slots, engines, rate limits and spend of a run as it works',
  flags: flags({ run: { ...namedRun, place: 'optional' }, output }),
  examples: [
    ['$0 top', 'the newest run, until it ends'],
    ['$0 top nightly-0821', 'with CI set: one picture after the other, for a log'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    using store = openForReading(root);
    const run = requireRun(store, args.run ?? 'last');
    const redraw = process.stdout.isTTY === true && !inCi();
    const ended = await watchRun({
      ...{ store, run, redraw, everyMs: redraw ? 1000 : 15_000, write: printData },
      gone: () => workerOn(root, run.name) === null,
      also: () => stateLines(readLiveState(store, run.id)),
    });
    say(lastWord(ended, root));
    return EXIT.done;
  },
});

/** Pure. Names come from the record, where any program can write. */
export function stateLines(state: LiveState | null): string[] {
  if (!state) return [];
  return [
    `${state.slots} slots`,
    ...state.engines.map(
      ({ name, active, lost }) =>
        `engine ${inert(name)} ${lost ? 'does not answer' : `${active} containers`}`,
    ),
    ...state.models.map(modelLine),
  ];
}

function modelLine(model: LiveState['models'][number]): string {
  const { arm, inFlight, waiting, blockedMs, rateLimited, limit, rpm, tpm } = model;
  return [
    `model of ${inert(arm)} ${inFlight} calls out`,
    ...(limit === null ? [] : [`at most ${limit} at a time`]),
    ...(waiting > 0 ? [`${waiting} wait`] : []),
    ...(blockedMs > 0 ? [`none starts for ${Math.ceil(blockedMs / 1000)} s`] : []),
    ...(rateLimited > 0 ? [`${rateLimited} refused as too many`] : []),
    ...(rpm ? [`${rpm} requests a minute`] : []),
    ...(tpm ? [`${tpm} tokens a minute`] : []),
  ].join(' · ');
}
