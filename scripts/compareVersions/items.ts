// What is compared: each item makes one version do something in a folder of its own, and whatever lies there afterwards is compared.

import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Origin } from './compareFolders.ts';
import { orderOf, toSchemaOf } from './dumpDatabase.ts';
import { recordRequests } from './requests.ts';
import type { Session, Shared } from './session.ts';

export interface Item {
  readonly name: string;
  readonly what: string;
  /** Paths below `shared.data` without which the item is left out. */
  readonly needs: readonly string[];
  readonly origin: Origin;
  /** Reads what the item `demo` of the old version left. */
  readonly afterDemo?: true;
  run(session: Session, shared: Shared): Promise<void>;
}

const VERBS = [
  ...['run', 'resume', 'evaluate', 'report', 'compare', 'ls', 'show', 'view', 'export', 'baseline', 'verify'],
  ...['import', 'replay', 'datasets', 'images', 'doctor', 'clean'],
];

/** The old version's demo results in this item's folder, so that both versions read the same record. */
function takeDemo(session: Session, { work }: Shared): void {
  const results = join(session.folder, 'results');
  cpSync(join(work, 'old', 'demo', 'results'), results, { recursive: true });
  for (const file of readdirSync(results).filter((name) => /\.db(?:\.backup-[\w-]+)?$/.test(name)))
    toSchemaOf(session.checkout, join(results, file));
}

async function help(session: Session): Promise<void> {
  await session.call('--help');
  await session.call('--version');
  for (const verb of VERBS) await session.call(verb, '--help');
}

/** What a person gets wrong: the sentence, where it goes, and the exit code. */
async function mistakes(session: Session, { checkout }: Shared): Promise<void> {
  const data = join(checkout, 'datasets', 'demo', 'demo.jsonl');
  for (const args of [
    [],
    ['nonsense'],
    ['ls', 'nobody'],
    ['ls', '--nonsense'],
    ['show', 'nobody', '--json'],
    ['report', 'nobody'],
    ['compare', 'one'],
    ['compare', 'one', 'two'],
    ['export', 'nobody', 'nonsense'],
    ['resume', 'nobody'],
    ['verify', 'nobody'],
    ['evaluate'],
    ['evaluate', 'nowhere.json'],
    ['import', 'nowhere'],
    ['replay', 'nowhere'],
    ['datasets', 'show', 'nowhere'],
    ['datasets', 'nonsense'],
    ['images', 'plan', 'nowhere'],
    ['baseline', 'set', 'nobody'],
    ['run'],
    ['run', '--subset', 'nowhere.jsonl', '-m', 'scripted:x'],
    ['run', '--subset', data, '-m', 'scripted:nowhere'],
    ['run', '--subset', data, '-c', 'agent.step_limt=1'],
    ['run', '--subset', data, '-c', 'agent.step_limit=many'],
    ['run', '--subset', data, '--slice', 'a:b'],
    ['run', '--subset', data, '--order', 'random'],
    ['run', '--subset', data, '-w', 'two'],
  ])
    await session.call(...args);
}

export const ITEMS: readonly Item[] = [
  { name: 'help', what: '--help and --version of every verb', needs: [], origin: 'one record', run: help },
  {
    name: 'mistakes',
    what: 'wrong calls: text, stream, exit code',
    needs: [],
    origin: 'one record',
    run: mistakes,
  },
  {
    name: 'demo',
    what: 'a demo run and a second one with arms and epochs: record, schema, files',
    needs: [],
    origin: 'own run',
    run: runDemo,
  },
  {
    name: 'reading',
    what: 'every reading verb over one record, as text and --json',
    needs: [],
    origin: 'one record',
    afterDemo: true,
    run: async (session, shared) => {
      takeDemo(session, shared);
      await readEverything(session);
    },
  },
  {
    name: 'exports',
    what: 'everything that export writes, from one record',
    needs: [],
    origin: 'one record',
    afterDemo: true,
    run: async (session, shared) => {
      takeDemo(session, shared);
      await exportEverything(session);
    },
  },
  {
    name: 'regrade',
    what: 'verdicts and reports from the saved logs of the harness',
    needs: ['data/grading-logs', 'data/datasets'],
    origin: 'one record',
    run: regradeLogs,
  },
  {
    name: 'replay',
    what: 'published trajectories, message by message',
    needs: ['data/trajectories'],
    origin: 'one record',
    run: replayTrajectories,
  },
  {
    name: 'import',
    what: 'runs of other tools: record, report, files',
    needs: ['data/trajectories', 'data/grading-logs', 'data/predictions'],
    origin: 'own import',
    run: importForeign,
  },
  {
    name: 'datasets',
    what: 'published datasets shown and converted',
    needs: ['data/datasets'],
    origin: 'one record',
    run: convertDatasets,
  },
  {
    name: 'requests',
    what: 'what is sent to a model, over HTTP',
    needs: ['golden/requests', 'data/configs'],
    origin: 'own run',
    run: recordRequests,
  },
];

// Public data of the field: logs that the harness graded, trajectories of mini-swe-agent, predictions, datasets.

/** A copy that may be written to; the data may be read-only. */
function copyOf(source: string, target: string): string {
  cpSync(source, target, { recursive: true });
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  chmodSync(target, 0o755);
  return target;
}

/** mini-swe-agent's folder as it left it: predictions, and one folder for each trajectory. */
function unpackTrajectories({ folder }: Session, { data }: Shared): string {
  const source = join(data, 'data', 'trajectories');
  const target = copyOf(source, join(folder, 'mini'));
  for (const name of readdirSync(source).filter((file) => file.endsWith('.tar.gz'))) {
    const done = spawnSync('tar', ['-xzf', join(source, name), '-C', target]);
    if (done.status !== 0) throw new Error(`tar of ${name} failed: ${done.stderr}`);
  }
  return 'mini';
}

async function regradeLogs(session: Session, { data }: Shared): Promise<void> {
  // As the flag was called at first.
  const verb = readFileSync(join(session.checkout, 'src', 'cli', 'verbs', 'evaluate.ts'), 'utf8');
  const flag = verb.includes('harness: oneOf') ? '--harness' : '--dialect';
  const logs = join(data, 'data', 'grading-logs');
  const verified = join(data, 'data', 'datasets', 'SWE-bench_Verified_test.parquet');
  const curated = join(logs, 'curated', 'instances.jsonl');
  for (const [name, subset] of [
    ['verified-98', verified],
    ['curated', curated],
  ] as const) {
    copyOf(join(logs, name), join(session.folder, name));
    for (const harness of ['v5', 'v4.1']) {
      const how = ['--regrade', name, '--subset', subset, flag, harness];
      await session.call('evaluate', ...how, '--no-write', '--json');
    }
    await session.call('evaluate', '--regrade', name, '--subset', subset);
  }
}

async function replayTrajectories(session: Session, shared: Shared): Promise<void> {
  const folder = unpackTrajectories(session, shared);
  await session.call('replay', folder, '--check', '--json');
  await session.call('replay', folder, '--check');
}

async function importForeign(session: Session, shared: Shared): Promise<void> {
  const { data } = shared;
  const subset = ['--subset', join(data, 'data', 'datasets', 'SWE-bench_Verified_test.parquet')];
  const lite = ['--subset', join(data, 'data', 'datasets', 'SWE-bench_Lite_test.parquet')];
  const logs = join(data, 'data', 'grading-logs', 'verified-98');
  const aider = join(data, 'data', 'predictions', 'aider-lite');
  const o = ['-o', 'results'];
  await session.call('import', unpackTrajectories(session, shared), ...subset, '--run-id', 'mini', ...o);
  await session.call('import', join(logs, 'run-report.json'), ...subset, '--run-id', 'report', ...o);
  await session.call('import', logs, ...subset, '--run-id', 'logs', ...o);
  mkdirSync(join(session.folder, 'aider'));
  for (const name of readdirSync(aider))
    cpSync(join(aider, name), join(session.folder, 'aider', 'all_preds.jsonl'));
  await session.call('import', 'aider', ...lite, '--run-id', 'aider', ...o);
  for (const run of ['mini', 'report', 'logs']) {
    await session.call('report', run, ...o, '--json');
    await session.call('ls', run, ...o, '--json');
    await session.call('verify', run, ...o, '--json');
    await session.call('export', run, 'all', ...o);
  }
  await session.call('compare', 'report', 'logs', ...o, '--json');
  await session.call('compare', join(logs, 'run-report.json'), 'logs', ...o, '--json');
  await session.call('compare', join(logs, 'predictions.jsonl'), 'mini', ...o, '--json');
  await session.call('compare', join(logs, 'predictions.jsonl'), 'aider/all_preds.jsonl', ...o, '--json');
}

async function convertDatasets(session: Session, { data }: Shared): Promise<void> {
  const folder = join(data, 'data', 'datasets');
  for (const name of readdirSync(folder).sort()) {
    await session.call('datasets', 'show', join(folder, name), '--json');
    await session.call('datasets', 'show', join(folder, name), '--ids');
    await session.call('datasets', 'convert', join(folder, name), `${name}.jsonl`);
  }
}

// The demo run with scripted replies, and all that can be read and exported from it.
const FEW = ['swebatch__cronwheel-23', 'swebatch__mdlite-26', 'swebatch__tabular-28'];

/** One worker, so that both versions do things in the same order. */
async function runDemo(session: Session, { checkout }: Shared): Promise<void> {
  const demo = join(checkout, 'datasets', 'demo');
  const common = [
    ...['--subset', join(demo, 'demo.jsonl'), '-c', join(checkout, 'configs', 'demo.yaml')],
    ...['-m', `scripted:${join(demo, 'replies')}`, '--model-latency', '0', '-w', '1'],
    ...['-c', 'grading.workers=1', '--progress', 'none', '--order', 'dataset'],
  ];
  const code = await session.call('run', ...common, '--evaluate', '--run-id', 'demo');
  if (code !== 0) throw new Error(`the demo run ended with ${code}; does \`npm run demo\` work here?`);
  // Of trials whose images are there the first one starts, and Docker answers in any order: here no two are asked about at a time.
  const arms = ['-m', 'replay:demo', '--epochs', '2', '-i', FEW.join(','), '-c', 'images.ahead=0'];
  await session.call('run', ...common, ...arms, '--evaluate', '--run-id', 'arms');
  session.keep('order', orderOf('arms', join(session.folder, 'results', 'swebatch.db')));
  // In a root without runs, so that nothing is foretold from what was measured here.
  await session.call('run', ...common, '-o', 'empty', '--dry-run', '--run-id', 'plan', '--json');
}

async function readEverything({ call }: Session): Promise<void> {
  const o = ['-o', 'results'];
  const both = async (...args: string[]) => {
    await call(...args, ...o);
    await call(...args, ...o, '--json');
  };
  await both('ls');
  for (const run of ['demo', 'arms']) {
    await both('ls', run);
    await both('show', run);
    await call('show', run, '--manifest', ...o);
    await both('verify', run);
    for (const format of ['terminal', 'markdown', 'json', 'html'])
      await call('report', run, ...o, '--format', format);
  }
  await both('ls', 'demo', '--class', 'limit');
  for (const id of FEW) {
    await both('show', 'demo', id);
    await call('show', 'demo', id, '--patch', ...o);
    await call('show', 'demo', id, '--full', ...o);
  }
  await both('report', 'demo', '--history');
  for (const format of ['terminal', 'markdown', 'json', 'html'])
    await call('compare', 'demo', 'arms', ...o, '--format', format);
  await both('compare', 'demo', 'arms', '--config');
  await call('compare', 'results/demo/preds.json', 'results/arms/preds.json', ...o, '--json');
  await both('baseline', 'set', 'demo');
  await both('baseline', 'show');
  await both('compare', 'baseline', 'arms', '--gate', '--max-drop', '1%', '--artifacts', 'gate');
  await both('baseline', 'remove');
  await call('view', 'results', '--bundle', 'bundle');
}

async function exportEverything({ call }: Session): Promise<void> {
  for (const run of ['demo', 'arms']) {
    const o = ['-o', 'results'];
    await call('export', run, 'all', ...o, '--to', `${run}/all`, '--emit-empty');
    for (const what of ['preds', 'trajs', 'summary', 'manifest'])
      await call('export', run, what, ...o, '--to', `${run}/${what}`);
    for (const [what, end] of Object.entries({ csv: 'csv', junit: 'xml', config: 'yaml', html: 'html' }))
      await call('export', run, what, ...o, '--to', `${run}.${end}`);
    await call('export', run, 'recording', ...o, '--to', `${run}.recording.gz`);
    await call('export', run, 'csv', ...o);
    await call('export', run, 'config', ...o);
  }
  const submission = ['-o', 'results', '--split', 'lite', '--system', 'demo', '--to', 'submission'];
  await call('export', 'demo', 'submission', ...submission);
}
