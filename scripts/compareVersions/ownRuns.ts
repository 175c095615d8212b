// The demo run with scripted replies, and all that can be read and exported from it.
import { join } from 'node:path';
import { orderOf } from './dumpDatabase.ts';
import type { Shared } from './items.ts';
import type { Session } from './session.ts';

const FEW = ['swebatch__cronwheel-23', 'swebatch__mdlite-26', 'swebatch__tabular-28'];

/** One worker, so that both versions do things in the same order. */
export async function runDemo(session: Session, { checkout }: Shared): Promise<void> {
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

export async function readEverything({ call }: Session): Promise<void> {
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

export async function exportEverything({ call }: Session): Promise<void> {
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
