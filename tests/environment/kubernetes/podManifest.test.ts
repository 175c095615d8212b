// The pod of an attempt: what is in it whatever a user's template says, and what a template may not say.
import { describe, expect, test } from 'vitest';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { clusterConfigSchema } from '../../../src/environment/kubernetes/clusterConfig.ts';
import {
  labelValue,
  literal,
  podManifest,
  podName,
  userProblem,
} from '../../../src/environment/kubernetes/podManifest.ts';
import { reapPods } from '../../../src/environment/kubernetes/podReaper.ts';
import { currentOwner, isOwnerAlive, LABELS } from '../../../src/environment/owner.ts';

const parts = (environment: object = {}, cluster: object = {}) => ({
  name: 'swebatch-x-1',
  image: 'registry.example/x:1',
  config: environmentConfigSchema.parse({ environment_class: 'kubernetes', ...environment }),
  cluster: clusterConfigSchema.parse(cluster),
  request: { owner: currentOwner('night 1', '3.1'), instanceId: 'django__django-1' },
  quietEnv: true,
  now: new Date(0),
});
const specOf = (environment: object = {}, cluster: object = {}) =>
  podManifest(parts(environment, cluster)).spec!;
const main = (environment: object = {}, cluster: object = {}) =>
  specOf(environment, cluster).containers.find(({ name }) => name === 'main')!;

test('its commands begin where no agent can remove the folder; the folder of the image stays where it is asked for', () => {
  expect(main().workingDir).toBe('/');
  const { request, ...others } = parts();
  const asked = podManifest({ ...others, request: { ...request, container: { cwd: 'image' } } });
  expect(asked.spec!.containers[0]!.workingDir).toBeUndefined();
});

describe('what keeps a pod closed', () => {
  test('is in every manifest', () => {
    const spec = specOf();
    expect(spec).toMatchObject({
      ...{ restartPolicy: 'Never', automountServiceAccountToken: false, enableServiceLinks: false },
      ...{ hostNetwork: false, hostPID: false, hostIPC: false, shareProcessNamespace: false },
      ...{ terminationGracePeriodSeconds: 0, activeDeadlineSeconds: 7200, dnsPolicy: 'None' },
    });
    expect(main().securityContext).toMatchObject({ privileged: false, allowPrivilegeEscalation: false });
    expect(podManifest(parts()).metadata?.labels).toMatchObject({ 'swebatch/network': 'none' });
  });

  test('stays when a template says otherwise in a way that no check knows', () => {
    // As if the check had let it pass.
    const cluster = {
      ...clusterConfigSchema.parse({}),
      pod_template: {
        metadata: {
          labels: { 'swebatch/network': 'open', team: 'a' },
          annotations: { [LABELS.run]: 'other' },
        },
        spec: {
          ...{
            restartPolicy: 'Always',
            hostNetwork: true,
            hostPID: true,
            automountServiceAccountToken: true,
          },
          ...{ dnsPolicy: 'ClusterFirst', shareProcessNamespace: true, priorityClassName: 'low' },
          containers: [
            {
              name: 'main',
              image: 'evil',
              command: ['sh'],
              securityContext: { privileged: true },
              volumeMounts: [],
            },
            { name: 'beside', image: 'b' },
          ],
        },
      },
    };
    const made = podManifest({ ...parts(), cluster });
    expect(made.metadata?.labels).toMatchObject({ 'swebatch/network': 'none', team: 'a' });
    expect(made.metadata?.annotations?.[LABELS.run]).toBe('night 1');
    expect(made.spec).toMatchObject({
      restartPolicy: 'Never',
      hostNetwork: false,
      hostPID: false,
      dnsPolicy: 'None',
    });
    expect(made.spec).toMatchObject({
      automountServiceAccountToken: false,
      shareProcessNamespace: false,
      priorityClassName: 'low',
    });
    const [first, second] = made.spec!.containers;
    expect(first).toMatchObject({
      image: 'registry.example/x:1',
      securityContext: { privileged: false },
      volumeMounts: [],
    });
    expect(first?.command?.[0]).toBe('sh');
    expect(first?.command?.length).toBeGreaterThan(3);
    expect(second).toEqual({ name: 'beside', image: 'b' });
  });

  test.each([
    [{ spec: { hostNetwork: true } }, 'sets spec.hostNetwork'],
    [{ spec: { shareProcessNamespace: true } }, 'sets spec.shareProcessNamespace'],
    [{ spec: { volumes: [{ name: 'd', hostPath: { path: '/' } }] } }, 'folder of the node'],
    [
      { spec: { volumes: [{ name: 't', projected: { sources: [{ serviceAccountToken: {} }] } }] } },
      'credentials of the cluster',
    ],
    [{ spec: { containers: [{ name: 'b', securityContext: { privileged: true } }] } }, 'is privileged'],
    [
      { spec: { initContainers: [{ name: 'i', securityContext: { capabilities: { add: ['ALL'] } } }] } },
      'adds capabilities',
    ],
    [{ spec: { containers: [{ name: 'main', command: ['x'] }] } }, 'sets command'],
    [{ spec: { containers: [{ name: 'swebatch-relay', image: 'x' }] } }, 'keeps for itself'],
    [{ spec: { initContainers: [{ name: 'swebatch-relay' }] } }, 'keeps for itself'],
    [{ spec: { volumes: [{ name: 'swebatch-program', emptyDir: {} }] } }, 'keeps for itself'],
    [
      {
        spec: {
          containers: [{ name: 'main', volumeMounts: [{ name: 'swebatch-relay', mountPath: '/relay' }] }],
        },
      },
      'which is a volume of swebatch',
    ],
    [{ status: {} }, 'only metadata and spec'],
  ])('a template with %j is refused', (pod_template, words) => {
    const read = clusterConfigSchema.safeParse({ pod_template });
    expect(read.success).toBe(false);
    expect(JSON.stringify(read.error?.issues)).toContain(words);
  });
});

describe('the relay of an agent that brings its own program', () => {
  const withRelay = (environment: object = {}, pod_template: object = {}, program = true) =>
    podManifest({
      ...parts(environment),
      // As if the check had let it pass.
      cluster: { ...clusterConfigSchema.parse({}), pod_template: { ...pod_template } },
      sidecar: { program },
    }).spec!;

  test('is in no other pod', () => {
    const spec = specOf();
    expect(spec.containers.map(({ name }) => name)).toEqual(['main']);
    expect(spec.volumes).toBeUndefined();
    expect(JSON.stringify(spec)).not.toContain('swebatch-relay');
  });

  test('has no rights, no files but its own, small limits, and nothing of the environment that the agent has', () => {
    const [own, relay] = withRelay({
      env: { TOKEN: 'of-the-agent' },
      user: '1000',
      pull: 'always',
    }).containers;
    expect(own?.name).toBe('main');
    expect(relay).toMatchObject({
      ...{ name: 'swebatch-relay', image: 'registry.example/x:1', imagePullPolicy: 'IfNotPresent' },
      workingDir: '/',
      securityContext: {
        ...{ privileged: false, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
        ...{ runAsNonRoot: true, runAsUser: 65534, runAsGroup: 65534, capabilities: { drop: ['ALL'] } },
        seccompProfile: { type: 'RuntimeDefault' },
      },
      resources: { limits: { memory: '256Mi', cpu: '1' } },
    });
    expect(relay?.env).toBeUndefined();
    expect(relay?.envFrom).toBeUndefined();
    expect(withRelay({ pull: 'never' }).containers[1]?.imagePullPolicy).toBe('Never');
  });

  test('shares the program with the agent, which may only read it, and the relay with nobody', () => {
    const { containers, volumes, shareProcessNamespace } = withRelay();
    const [own, relay] = containers;
    expect(own?.volumeMounts).toEqual([
      { name: 'swebatch-program', mountPath: '/opt/swebatch-program', readOnly: true },
    ]);
    expect(relay?.volumeMounts).toEqual([
      { name: 'swebatch-relay', mountPath: '/opt/swebatch-relay' },
      { name: 'swebatch-program', mountPath: '/opt/swebatch-program' },
    ]);
    expect(volumes?.map(({ name, emptyDir }) => [name, typeof emptyDir?.sizeLimit])).toEqual([
      ['swebatch-relay', 'string'],
      ['swebatch-program', 'string'],
    ]);
    expect(shareProcessNamespace).toBe(false);
    const inImage = withRelay({}, {}, false);
    expect(inImage.containers[0]?.volumeMounts).toEqual([]);
    expect(inImage.volumes).toHaveLength(1);
  });

  test('adds to the limit of the disk only where the agent has one: alone it would be that of the pod', () => {
    const disk = (spec: ReturnType<typeof withRelay>) =>
      spec.containers[1]?.resources?.limits?.['ephemeral-storage'];
    expect(disk(withRelay({ disk: '5g' }))).toBe('3Gi');
    expect(disk(withRelay({ disk: '0' }))).toBeUndefined();
  });

  test('stays as it is when a template says otherwise in a way that no check knows', () => {
    const spec = withRelay(
      {},
      {
        spec: {
          volumes: [
            { name: 'swebatch-program', hostPath: { path: '/' } },
            { name: 'mine', emptyDir: {} },
          ],
          containers: [
            {
              name: 'main',
              volumeMounts: [
                { name: 'swebatch-relay', mountPath: '/r' },
                { name: 'mine', mountPath: '/mine' },
              ],
            },
            { name: 'swebatch-relay', image: 'evil', securityContext: { privileged: true } },
            { name: 'beside', image: 'b' },
          ],
        },
      },
    );
    expect(spec.containers.map(({ name, image }) => [name, image])).toEqual([
      ['main', 'registry.example/x:1'],
      ['swebatch-relay', 'registry.example/x:1'],
      ['beside', 'b'],
    ]);
    expect(spec.containers[0]?.volumeMounts?.map(({ name }) => name)).toEqual(['mine', 'swebatch-program']);
    expect(spec.volumes?.map(({ name }) => name)).toEqual(['mine', 'swebatch-relay', 'swebatch-program']);
    expect(JSON.stringify(spec)).not.toContain('hostPath');
  });
});

describe('what the configuration asks for', () => {
  test('limits, requests and the way to the image', () => {
    const container = main({ memory: '2g', cpus: 1.5, disk: '5g', pull: 'always' }, { cpu_request: '100m' });
    expect(container.resources).toEqual({
      limits: { memory: String(2 * 2 ** 30), cpu: '1500m', 'ephemeral-storage': String(5 * 2 ** 30) },
      requests: { cpu: '100m', 'ephemeral-storage': String(2 ** 30) },
    });
    expect(container.imagePullPolicy).toBe('Always');
    expect(main({ memory: '0', cpus: 0, disk: '0' }).resources).toEqual({ limits: {}, requests: {} });
  });

  test('where it runs', () => {
    const spec = specOf(
      { platform: 'linux/arm64/v8', network: 'bridge', container_timeout: 0 },
      {
        ...{ node_selector: { pool: 'big' }, tolerations: [{ key: 'spot', operator: 'Exists' }] },
        ...{ pull_secrets: ['regcred'], runtime_class: 'gvisor' },
        pod_template: { spec: { tolerations: [{ key: 'gpu' }], nodeSelector: { pool: 'small', zone: 'a' } } },
      },
    );
    expect(spec).toMatchObject({
      nodeSelector: { pool: 'big', zone: 'a', 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' },
      tolerations: [{ key: 'gpu' }, { key: 'spot', operator: 'Exists' }],
      imagePullSecrets: [{ name: 'regcred' }],
      runtimeClassName: 'gvisor',
    });
    expect(spec.dnsPolicy).toBeUndefined();
    expect(spec.activeDeadlineSeconds).toBeUndefined();
  });

  test('text of ours and of users reaches the container as it is', () => {
    // The kubelet puts values in for $(NAME), and makes one of two dollar signs.
    const kubelet = (text: string) =>
      text.replace(/\$(\$|\(A\))/g, (_, rest: string) => (rest === '$' ? '$' : 'value'));
    for (const text of ['echo $$', '$(A) $A', '$$(A)', 'no sign', '$'])
      expect(kubelet(literal(text))).toBe(text);
    expect(main({ env: { A: '$(B)' } }).env).toContainEqual({ name: 'A', value: '$$(B)' });
    expect(main().command?.some((word) => word.includes('$$'))).toBe(true);
  });

  test('users are numbers', () => {
    expect(main({ user: '1000:100' }).securityContext).toMatchObject({ runAsUser: 1000, runAsGroup: 100 });
    expect(userProblem('nobody')).toContain('takes a number');
    expect(userProblem('root')).toBeUndefined();
  });
});

describe('names and owners', () => {
  test('are what Kubernetes takes, whatever an instance and a run are called', () => {
    for (const id of ['django__django-1', 'A'.repeat(128), '..-..', 'ä']) {
      expect(podName(id)).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    }
    for (const run of ['night 1', '-x-', '', 'ü', 'a'.repeat(90)])
      expect(labelValue(run)).toMatch(/^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$/);
  });

  test('the annotations prove whose it is', () => {
    expect(isOwnerAlive(podManifest(parts()).metadata?.annotations ?? {})).toBe('alive');
  });
});

describe('pods that a dead process left', () => {
  const listed = (name: string, annotations: Record<string, string>) => ({ metadata: { name, annotations } });
  const own = (name: string, pid: number) => ({
    ...podManifest({ ...parts(), name }).metadata!.annotations,
    [LABELS.pid]: String(pid),
    [LABELS.pidStart]: pid === process.pid ? currentOwner('r', '1').pidStart : '1',
  });

  test('are removed, and no other is: not of a live process, of another machine, with copied annotations, or with none', async () => {
    const deleted: string[] = [];
    const dead = 2 ** 22 + 1;
    const cluster = {
      listPods: async () => [
        listed('orphan', own('orphan', dead)),
        listed('alive', own('alive', process.pid)),
        listed('elsewhere', { ...own('elsewhere', dead), [LABELS.host]: 'another' }),
        listed('copied', own('orphan', dead)),
        listed('bare', {}),
      ],
      deletePod: async (name: string) => void deleted.push(name),
    };
    expect((await reapPods(cluster, { dryRun: true })).orphans.map(({ name }) => name)).toEqual(['orphan']);
    expect(deleted).toEqual([]);
    const result = await reapPods(cluster, { dryRun: false });
    expect(deleted).toEqual(['orphan']);
    expect(result.kept.map(({ name }) => name)).toEqual(['alive', 'elsewhere', 'copied', 'bare']);
  });
});
