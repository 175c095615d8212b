// `npm run demo`: from a fresh clone to a graded run of the bundled dataset, with scripted replies: no key, no cost.
// Plain JavaScript without any package, for the same reason as setup.mjs. A second run reuses packages, engine, images and
// build, and makes a new run beside the first; one that was interrupted is continued.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensureBuild, RESULTS, runsSoFar, swebatch } from './demo/command.mjs';
import { demoRunIds } from './demo/runId.mjs';
import { SetupError, say } from './setup/say.mjs';
import { REPO_ROOT, setUp } from './setup/steps.mjs';

function listWritten(run) {
  const folder = join(RESULTS, run);
  const written = [
    [join(RESULTS, 'swebatch.db'), 'the record: every trial, step, command and verdict'],
    [join(folder, 'preds.json'), 'predictions, as the SWE-bench harness reads them'],
    [join(folder, 'all_preds.jsonl'), 'the same, one a line'],
    [join(folder, 'trajectories'), 'one trajectory per instance'],
    [join(folder, 'exit_statuses.yaml'), 'how each trial ended'],
    [join(folder, 'summary.md'), 'the summary, and summary.json for programs'],
    [join(folder, 'run.json'), 'the manifest: versions, configuration, dataset'],
    [join(folder, 'logs', 'run_evaluation'), 'logs and reports of the grading, in the official layout'],
  ].filter(([path]) => existsSync(join(REPO_ROOT, path)));
  const width = Math.max(...written.map(([path]) => path.length));
  say('\nWritten:');
  for (const [path, what] of written) say(`  ${path.padEnd(width)}  ${what}`);
}

function runDemo(run) {
  const dataset = ['--subset', 'datasets/demo/demo.jsonl', '--model', 'scripted:datasets/demo/replies'];
  const how = ['-c', 'configs/demo.yaml', '-w', '4', '--evaluate'];
  return swebatch(['run', ...dataset, ...how, '-o', RESULTS, '--run-id', run]);
}

async function main() {
  const code = await setUp({ packages: true, images: true });
  if (code !== 0) return code;
  ensureBuild();
  const started = Date.now();
  let [run, fresh] = demoRunIds(runsSoFar());
  let ran = runDemo(run);
  if (ran === 2 && fresh !== undefined) {
    run = fresh;
    ran = runDemo(run);
  }
  if (ran !== 0) return ran;
  const reported = swebatch(['report', run, '-o', RESULTS]);
  listWritten(run);
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  say(`\n${seconds} s. Next: npx swebatch show ${run} -o ${RESULTS}; npx swebatch view -o ${RESULTS}`);
  return reported;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(`demo: ${error.message}`);
  process.exitCode = 2;
}
