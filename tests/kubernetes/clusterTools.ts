// What a person with all rights sees of the test cluster, and the engine below it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { docker } from '../support/docker.ts';

const FOLDER = process.env.SWEBATCH_KUBERNETES ?? '';
/** Where the runner's pods are. */
const namespace = (): string =>
  /namespace: ([a-z0-9-]+)/.exec(readFileSync(process.env.KUBECONFIG ?? '', 'utf8'))?.[1] ?? 'swebatch';

export const kubectl = (...args: string[]): string =>
  execFileSync(
    join(FOLDER, 'bin', 'kubectl'),
    ['--kubeconfig', join(FOLDER, 'run', 'admin.kubeconfig'), '-n', namespace(), ...args],
    { encoding: 'utf8', timeout: 60_000, maxBuffer: 1 << 26, stdio: ['ignore', 'pipe', 'pipe'] },
  );

export const podNames = (): string[] => kubectl('get', 'pods', '-o', 'name').split('\n').filter(Boolean);

/** scripts/kubernetes/cluster.sh, with what it takes. */
export const clusterScript = (...args: string[]): string =>
  execFileSync(join(import.meta.dirname, '..', '..', 'scripts', 'kubernetes', 'cluster.sh'), args, {
    encoding: 'utf8',
    timeout: 120_000,
  });

/** Containers of the engine by the name that the pod has for them. */
export async function containersOfPod(pod: string, name: string): Promise<string[]> {
  const label = [`io.kubernetes.pod.name=${pod}`, `io.kubernetes.container.name=${name}`];
  return (await docker.listContainers({ filters: { label } })).map(({ Id }) => Id);
}
