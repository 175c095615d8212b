// docs/kubernetes/job.yaml and cronjob.yaml, applied: swebatch as an image runs and grades the bundled dataset from within the cluster.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { openStore } from '../../src/store/open.ts';
import { REPO, tempDir } from '../support/cli.ts';
import { buildProgramImage, docker } from '../support/program/programImage.ts';
import { kubectl } from './clusterTools.ts';

const NAME = `swebatch-test/inside:${process.pid}`;
const NODE = `swebatch-test/inside-node:${process.pid}`;
const work = tempDir('inside-');
const results = join(work, 'results');
// Volumes of the node are not those of a cluster: this one is a folder of this machine.
const VOLUME = {
  ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'swebatch-results' } },
  spec: {
    ...{ capacity: { storage: '50Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: results } },
    claimRef: { namespace: 'swebatch', name: 'swebatch-results' },
  },
};

interface Container {
  image: string;
  imagePullPolicy?: string;
  args: string[];
  env: { name: string; value: string }[];
  resources: object;
}
interface Manifest {
  apiVersion: string;
  kind: string;
  spec: {
    template: { spec: { containers: Container[] } };
    jobTemplate: { spec: { template: { spec: { containers: Container[] } } } };
  };
}

/** As it stands in the docs, but for image, dataset, model and sizes. The cluster of the tests has no proxy for the address of services. */
function ofDocs(file: string, run: string): string {
  const documents = parseAllDocuments(readFileSync(join(REPO, 'docs/kubernetes', file), 'utf8')).map(
    (one) => one.toJS() as Manifest,
  );
  for (const one of documents) {
    // Kubernetes before 1.21 has it under its earlier name.
    if (
      one.kind === 'CronJob' &&
      !/cronjobs.* batch\/v1 /.test(kubectl('api-resources', '--api-group=batch'))
    )
      one.apiVersion = 'batch/v1beta1';
    const spec =
      one.kind === 'CronJob' ? one.spec.jobTemplate.spec : one.kind === 'Job' ? one.spec : undefined;
    for (const container of spec?.template.spec.containers ?? []) {
      container.image = NAME;
      container.imagePullPolicy = 'Never';
      const [verb, ...given] = container.args.filter(
        (arg) => !/^-m=|^--subset=|^-c=nightly|^--run-id/.test(arg),
      );
      container.args = [
        ...[verb!, '-c=demo', ...given, `--run-id=${run}`, '-w=2', '--evaluate', '-c=environment.pull=never'],
        ...['-c=environment.kubernetes.cpu_request=10m', '-c=environment.kubernetes.memory_request=16Mi'],
      ];
      container.env = [
        { name: 'KUBERNETES_SERVICE_HOST', value: '10.243.0.1' },
        { name: 'KUBERNETES_SERVICE_PORT', value: '26443' },
      ];
      container.resources = { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '2Gi' } };
    }
  }
  return documents.map((one) => stringify(one)).join('---\n');
}

function apply(name: string, text: string): void {
  const path = join(work, name);
  writeFileSync(path, text);
  kubectl('apply', '-f', path);
}

/** Outcomes of a run, from the record on the volume. */
function outcomes(run: string): string[] {
  const store = openStore(join(results, 'swebatch.db'), { readonly: true });
  try {
    return store
      .prepare(
        `SELECT e.outcome FROM evaluations e JOIN trials t ON t.id = e.trial_id JOIN runs r ON r.id = t.run_id
         WHERE r.name = ? AND t.state = 'sealed'`,
      )
      .pluck()
      .all(run) as string[];
  } finally {
    store.close();
  }
}
const logsOf = (job: string): string => {
  try {
    return kubectl('logs', `job/${job}`, '--tail=60');
  } catch (error) {
    return String(error);
  }
};
const completed = async (job: string) => {
  await expect
    .poll(
      () =>
        kubectl(
          'get',
          'job',
          job,
          '-o',
          'jsonpath={.status.succeeded}{" "}{.status.conditions[*].type}',
        ).trim(),
      { timeout: 280_000, interval: 2000 },
    )
    .toMatch(/Complete|Failed/);
  expect(kubectl('get', 'job', job, '-o', 'jsonpath={.status.conditions[*].type}'), logsOf(job)).toContain(
    'Complete',
  );
};

describe('a run from within the cluster', () => {
  beforeAll(() => {
    mkdirSync(results, { recursive: true });
    buildProgramImage({ work, name: NAME, node: NODE, beside: ['@kubernetes/client-node'] });
    apply('volume.yaml', stringify(VOLUME));
  });
  afterAll(() => {
    for (const one of [
      'job/swebatch',
      'job/tonight',
      'cronjob/swebatch-night',
      'pvc/swebatch-results',
      'pv/swebatch-results',
    ])
      kubectl('delete', one, '--ignore-not-found', '--wait=false');
    docker('rmi', '-f', NAME, NODE);
  });

  test('by the Job: all trials of the bundled dataset are in the record on the volume', async () => {
    apply('job.yaml', ofDocs('job.yaml', 'night'));
    await completed('swebatch');
    expect(outcomes('night')).toHaveLength(14);
    expect(existsSync(join(results, 'night', 'preds.json'))).toBe(true);
  });

  test('by the CronJob, started once by hand', async () => {
    apply('cronjob.yaml', ofDocs('cronjob.yaml', 'tonight'));
    kubectl('create', 'job', 'tonight', '--from=cronjob/swebatch-night');
    await completed('tonight');
    expect(outcomes('tonight')).toHaveLength(14);
  });
});
