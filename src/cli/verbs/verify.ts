/** `swebatch verify RUN`: checks every invariant of a run's record. */
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { verifyRun } from '../../store/verifyRun.ts';
import { defineVerb, flags, json, namedRun, output } from '../flags/verb.ts';
import { EXIT, printResult } from '../terminal/context.ts';

export const verifyVerb = defineVerb({
  name: 'verify',
  describe: 'check that the record of a run is whole and consistent',
  flags: flags({ run: namedRun, output, json }),
  examples: [['$0 verify last', 'exit 0 when every invariant holds, 5 when one does not']],
  async run(args) {
    using store = openForReading(resultsRoot(args.output));
    const result = verifyRun(store, requireRun(store, args.run));
    const lines = result.checks.map(
      (c) => `${c.ok ? 'ok  ' : 'FAIL'} ${c.name}${c.ok ? '' : ` (${c.offenders} row(s))`}`,
    );
    printResult(args.json, result, () => lines.join('\n'));
    return result.ok ? EXIT.done : EXIT.storage;
  },
});
