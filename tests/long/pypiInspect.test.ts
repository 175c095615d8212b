// What `export RUN inspect` writes, opened by Inspect itself, from PyPI: its reader, `inspect log dump`, and the files of its viewer.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { summarize } from '../../src/report/measure/summary.ts';
import { exportForeign } from '../../src/run/record/exportForeign.ts';
import { requireRun } from '../../src/run/resultsRoot.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { tempDir } from '../support/cli.ts';
import { recordedEnds } from '../support/foreign/recordedEnds.ts';
import { fromPypi } from '../support/python/fromPypi.ts';

const VERSION = '0.3.285';

const READ = `
import json, sys
from inspect_ai.log import read_eval_log
log = read_eval_log(sys.argv[1])
scored = [s for s in log.samples if s.scores]
print(json.dumps({
    "status": log.status, "model": log.eval.model, "epochs": log.eval.config.epochs or 1,
    "samples": len(log.samples), "lost": len([s for s in log.samples if s.error]),
    "resolved": sum(1 for s in scored for v in s.scores.values() if v.value == 1),
    "unresolved": sum(1 for s in scored for v in s.scores.values() if v.value == 0),
    "messages": sum(len(s.messages) for s in log.samples),
}))
`;

test.for([
  [1, ['default']],
  [2, ['a', 'b']],
] as const)('%i epochs, arms %j', async ([epochs, arms], context) => {
  const found = await fromPypi('inspect_ai', VERSION);
  if ('why' in found) return context.skip(found.why);
  const python = (...words: string[]) =>
    spawnSync('python3', words, {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      env: { ...process.env, PYTHONPATH: found.folder },
    });
  const dir = join(tempDir(), 'logs');
  const store = recordedEnds(epochs, arms);
  await exportForeign({ store, run: requireRun(store, 'r1'), dir, version: '1.2.3' }, 'inspect');
  const files = readdirSync(dir).toSorted();
  const figures = summarize(loadRunData(store, requireRun(store, 'r1').id)!).arms;
  expect(files).toHaveLength(figures.length);
  for (const [k, file] of files.entries()) {
    const read = python('-c', READ, join(dir, file));
    expect(read.status, read.stderr).toBe(0);
    const arm = figures[k]!;
    expect(JSON.parse(read.stdout)).toMatchObject({
      model: arm.model,
      epochs,
      resolved: arm.resolved.x,
      unresolved: arm.valid - arm.resolved.x,
    });
    const dumped = python('-m', 'inspect_ai', 'log', 'dump', join(dir, file));
    expect(dumped.status, dumped.stderr).toBe(0);
    expect(JSON.parse(dumped.stdout)).toMatchObject({ eval: { task: 'swe_bench' } });
  }
  const viewer = join(tempDir(), 'viewer');
  const bundled = python('-m', 'inspect_ai', 'view', 'bundle', '--log-dir', dir, '--output-dir', viewer);
  expect(bundled.status, bundled.stderr).toBe(0);
  expect(existsSync(join(viewer, 'index.html'))).toBe(true);
});
