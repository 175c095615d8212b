// Public data of the field: logs that the harness graded, trajectories of mini-swe-agent, predictions, datasets.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Shared } from './items.ts';
import type { Session } from './session.ts';

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

export async function regradeLogs(session: Session, { data }: Shared): Promise<void> {
  const logs = join(data, 'data', 'grading-logs');
  const verified = join(data, 'data', 'datasets', 'SWE-bench_Verified_test.parquet');
  const curated = join(logs, 'curated', 'instances.jsonl');
  for (const [name, subset] of [
    ['verified-98', verified],
    ['curated', curated],
  ] as const) {
    copyOf(join(logs, name), join(session.folder, name));
    for (const dialect of ['v5', 'v4.1']) {
      const how = ['--regrade', name, '--subset', subset, '--dialect', dialect];
      await session.call('evaluate', ...how, '--no-write', '--json');
    }
    await session.call('evaluate', '--regrade', name, '--subset', subset);
  }
}

export async function replayTrajectories(session: Session, shared: Shared): Promise<void> {
  const folder = unpackTrajectories(session, shared);
  await session.call('replay', folder, '--check', '--json');
  await session.call('replay', folder, '--check');
}

export async function importForeign(session: Session, shared: Shared): Promise<void> {
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

export async function convertDatasets(session: Session, { data }: Shared): Promise<void> {
  const folder = join(data, 'data', 'datasets');
  for (const name of readdirSync(folder).sort()) {
    await session.call('datasets', 'show', join(folder, name), '--json');
    await session.call('datasets', 'show', join(folder, name), '--ids');
    await session.call('datasets', 'convert', join(folder, name), `${name}.jsonl`);
  }
}
