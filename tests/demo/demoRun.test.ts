// The whole demo as `npm run demo` runs it, through the real program in real containers: what each scripted story comes to.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { run } from '../../src/demo/baseImage.ts';
import { readDemoRows } from '../../src/demo/demoDataset.ts';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const ids = readDemoRows().map((row) => row.instance_id);

const trialsSchema = z.array(
  z.object({ instance_id: z.string(), exit_reason: z.string(), exit_class: z.string(), outcome: z.string() }),
);
const predictionsSchema = z.record(
  z.string(),
  z.object({ instance_id: z.string(), model_patch: z.string() }),
);

const WRONG = ['swebatch__cronwheel-27', 'swebatch__mdlite-26', 'swebatch__tabular-25'];
const AT_LIMIT = 'swebatch__tabular-28';
const LOST = 'swebatch__mdlite-28';

/** What datasets/README.md promises of each script. */
function story(id: string): string {
  if (id === AT_LIMIT) return 'limit_steps limit empty_patch';
  if (id === LOST) return 'format_errors_exceeded limit empty_patch';
  return `submitted agent ${WRONG.includes(id) ? 'unresolved' : 'resolved'}`;
}

describe.skipIf(!available)('the demo', () => {
  test('comes to what its README says, one prediction per instance, and leaves no container', async () => {
    const out = tempDir('swebatch-demo-run-');
    const name = `demo-test-${process.pid}`;
    try {
      const dataset = ['--subset', 'datasets/demo/demo.jsonl', '--model', 'scripted:datasets/demo/replies'];
      const how = ['-c', 'configs/demo.yaml', '--model-latency', '0', '-w', '4', '--evaluate'];
      const done = await cli(['run', ...dataset, ...how, '-o', out, '--run-id', name]);
      expect(done.code, done.stderr).toBe(0);

      const listed = await cli(['ls', name, '-o', out, '--json']);
      const trials = trialsSchema.parse(JSON.parse(listed.stdout));
      const found = trials.map((t) => [t.instance_id, `${t.exit_reason} ${t.exit_class} ${t.outcome}`]);
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(ids.map((id) => [id, story(id)])));

      const predictions = predictionsSchema.parse(
        JSON.parse(readFileSync(join(out, name, 'preds.json'), 'utf8')),
      );
      expect(Object.keys(predictions).sort()).toEqual([...ids].sort());
      const empty = Object.values(predictions).filter((prediction) => prediction.model_patch === '');
      expect(empty.map((prediction) => prediction.instance_id).sort()).toEqual([LOST, AT_LIMIT].sort());

      const left = run('docker', ['ps', '-aq', '--filter', `label=swebatch.run=${name}`]);
      expect(left.stdout).toBe('');

      const report = await cli(['report', name, '-o', out]);
      expect(report.code, report.stderr).toBe(0);
      expect(report.stdout).toMatch(/resolved +9\/14 /);
    } finally {
      rmSync(out, { recursive: true, force: true });
    }
  });
});
