// The demo dataset in real containers: gold resolves, nothing and nonsense do not, and no image knows its own solution.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { draftRows, git } from '../../scripts/demo/draft.ts';
import { type Instance, instanceSchema } from '../../src/dataset/instance.ts';
import { run } from '../../src/demo/baseImage.ts';
import { ensureInstanceImages, readDemoRows, streamName } from '../../src/demo/demoDataset.ts';
import { createDockerFactory, type DockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import {
  GRADING_DOCKER_OPTIONS,
  gradingConfigSchema,
  gradingEnvironment,
} from '../../src/grading/gradingConfig.ts';
import { resolveGradeSpec } from '../../src/grading/specs/spec.ts';
import { evaluatePrediction } from '../../src/suites/sweBench/sweBench.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const rows = readDemoRows();

/** Applies everywhere and mends nothing: what an agent that gave up might hand in. */
const NOTE = `diff --git a/NOTES.txt b/NOTES.txt
new file mode 100644
--- /dev/null
+++ b/NOTES.txt
@@ -0,0 +1 @@
+I could not find it.
`;

describe.skipIf(!available)('demo instances in Docker', () => {
  const config = gradingConfigSchema.parse({ network: 'none', timeout: 120 });
  let factory: DockerFactory;
  beforeAll(() => {
    factory = createDockerFactory(gradingEnvironment(config, { pull: 'never' }), GRADING_DOCKER_OPTIONS);
  });
  afterAll(() => factory.close());

  const grade = (row: (typeof rows)[number], patch: string) => {
    const instance: Instance = instanceSchema.parse({
      ...row,
      FAIL_TO_PASS: JSON.parse(row.FAIL_TO_PASS),
      PASS_TO_PASS: JSON.parse(row.PASS_TO_PASS),
    });
    const resolved = resolveGradeSpec(instance);
    if (!resolved.ok) throw new Error(resolved.reason);
    const owner = currentOwner('demo-images-test', `${process.pid}`);
    return evaluatePrediction({ spec: resolved.spec, patch, factory, config, owner });
  };

  test.each(rows)('$instance_id: gold resolves', async (row) => {
    const result = await grade(row, row.patch);
    expect(result, result.log ?? '').toMatchObject({
      outcome: 'resolved',
      resolved: true,
      applyMethod: 'git apply --verbose',
    });
    expect(result.suspicion).toEqual([]);
  });

  test.each(rows)(
    '$instance_id: a patch that mends nothing fails every test to fix and keeps the others',
    async (row) => {
      const result = await grade(row, NOTE);
      expect(result, result.log ?? '').toMatchObject({ outcome: 'unresolved', resolved: false });
      const status = result.report?.[row.instance_id]?.tests_status;
      expect(status?.FAIL_TO_PASS).toEqual({ success: [], failure: JSON.parse(row.FAIL_TO_PASS) });
      expect(status?.PASS_TO_PASS).toEqual({ success: JSON.parse(row.PASS_TO_PASS), failure: [] });
    },
  );

  test('an empty prediction does not resolve', async () => {
    expect(await grade(rows[0]!, '')).toMatchObject({ outcome: 'empty_patch', resolved: null });
  });
});

describe.skipIf(!available)('demo images', () => {
  let work: string;
  beforeAll(() => {
    work = mkdtempSync(join(tmpdir(), 'swebatch-demo-images-'));
    draftRows(work);
  });
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  test('are made from what lies here: a second build does nothing', async () => {
    expect(await ensureInstanceImages(rows, false)).toEqual([]);
  });

  test.each(rows)('$image: clean, at its base commit, without any later commit', (row) => {
    const later = git(join(work, streamName(row)), 'rev-list', '--all', '--not', row.base_commit)
      .trim()
      .split('\n');
    expect(later.length).toBeGreaterThan(0);
    const script = [
      'git status --porcelain',
      'git rev-parse HEAD',
      'git rev-list --all --count',
      `for id in ${later.join(' ')}; do git cat-file -e $id 2>/dev/null && echo "holds $id"; done`,
      'git remote; git tag; git config --get user.name; git config --get user.email',
      'true',
    ].join('; ');
    const seen = run('docker', ['run', '--rm', '--network', 'none', row.image, 'bash', '-c', script]);
    const commits = git(join(work, streamName(row)), 'rev-list', '--count', row.base_commit).trim();
    expect(seen.stdout).toBe(`${row.base_commit}\n${commits}\n`);
  });
});
