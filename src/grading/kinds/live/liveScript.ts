/**
 * What SWE-bench-Live types into one shell of the container: patch of the tests, patch of the model, rebuild, tests, and what prints the
 * results. Only what the last one prints is the log. Pure.
 */
export const LIVE = { folder: '/mnt_tmp', log: '/mnt_tmp/swebatch_log.txt' } as const;

export interface LiveCommands {
  readonly rebuild: readonly string[];
  readonly test: readonly string[];
  readonly print: readonly string[];
}

const APPLY = 'git apply --reject  --whitespace=nowarn ';

/** An `export` or a `cd` of one command holds for the next, because all of them run in one shell. */
export function liveScript({ rebuild, test, print }: LiveCommands): string {
  const joined = (commands: readonly string[]) => commands.join(' ; ');
  const own = joined(print).trim() !== '';
  const tests = own ? joined(test) : 'bash run_test.sh > testlog.out 2>&1';
  return `
cd /testbed
${APPLY} ${LIVE.folder}/test.patch
${APPLY} ${LIVE.folder}/fix.patch || echo '>>>>> Patch Apply Failed'
${joined(rebuild)}
${own ? '' : `cp ${LIVE.folder}/run_test.sh run_test.sh`}
${tests}
{
${own ? joined(print) : 'cat testlog.out'}
} > ${LIVE.log} 2>&1
`;
}

/** What `run_test.sh` holds, for rows without commands that print. */
export const runTestScript = ({ test }: LiveCommands): string => `${test.join(' ; ')}\n`;
