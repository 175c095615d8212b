/** `swebatch verify RUN`: checks every invariant of a run's record. */
import type { Argv } from 'yargs';
import { openForReading, requireRun, resultsRoot } from '../../service/resultsRoot.ts';
import { verifyRun } from '../../store/verify.ts';
import { jsonOption, outputOption, type Verb } from '../flags/verb.ts';
import { EXIT, printData, printJson } from '../terminal/context.ts';

export const verifyVerb: Verb = {
  command: 'verify <run>',
  describe: 'check that the record of a run is whole and consistent',
  builder: (parser: Argv) =>
    parser
      .positional('run', { type: 'string', demandOption: true, describe: 'name, unique prefix, or "last"' })
      .option('output', outputOption)
      .option('json', jsonOption)
      .example('$0 verify last', 'exit 0 when every invariant holds, 5 when one does not'),
  async run(argv) {
    const store = openForReading(resultsRoot(argv.output as string));
    try {
      const result = verifyRun(store, requireRun(store, argv.run as string));
      if (argv.json) printJson(result);
      else
        printData(
          result.checks
            .map((c) => `${c.ok ? 'ok  ' : 'FAIL'} ${c.name}${c.ok ? '' : ` (${c.offenders} row(s))`}`)
            .join('\n'),
        );
      return result.ok ? EXIT.done : EXIT.storage;
    } finally {
      store.close();
    }
  },
};
