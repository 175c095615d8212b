// What is compared: each item makes one version do something in a folder of its own, and whatever lies there afterwards is compared.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { convertDatasets, importForeign, regradeLogs, replayTrajectories } from './foreignData.ts';
import { exportEverything, readEverything, runDemo } from './ownRuns.ts';
import { recordRequests } from './requests.ts';
import type { Origin } from './rules.ts';
import type { Session } from './session.ts';

export interface Shared {
  /** Holds `here` while a version runs, then `old` and `new`. */
  readonly work: string;
  readonly data: string;
  /** The old version's: the demo's dataset and configuration are taken from one place. */
  readonly checkout: string;
}

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
const takeDemo = (session: Session, { work }: Shared): void =>
  cpSync(join(work, 'old', 'demo', 'results'), join(session.folder, 'results'), { recursive: true });

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
