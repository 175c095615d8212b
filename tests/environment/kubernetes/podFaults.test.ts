// What a pod's status means, by answers as API servers gave them: which end an attempt has, and what is waited for.
import type { V1Pod } from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import { stateOfPod } from '../../../src/environment/kubernetes/podFaults.ts';

const LIFETIME_S = 7200;
const SCHEDULED = { type: 'PodScheduled', status: 'True' };

/** As the API gives it: times are texts there and dates in the client. */
const pod = (status: Record<string, unknown>, metadata: Record<string, unknown> = {}): V1Pod =>
  ({ metadata: { name: 'p', ...metadata }, status: { phase: 'Pending', ...status } }) as unknown as V1Pod;
const waits = (reason: string, message = ''): V1Pod =>
  pod({
    conditions: [SCHEDULED],
    containerStatuses: [{ name: 'main', state: { waiting: { reason, message } } }],
  });
const ended = (terminated: Record<string, unknown>, more: Record<string, unknown> = {}): V1Pod =>
  pod({
    ...{ phase: 'Failed', conditions: [SCHEDULED], ...more },
    containerStatuses: [{ name: 'main', state: { terminated } }],
  });
const fault = (of: V1Pod) => {
  const state = stateOfPod(of, LIFETIME_S);
  return state.state === 'failed' ? state.fault : state;
};

describe('a pod that waits', () => {
  test('for room has not failed, and says what the scheduler says', () => {
    const message = '0/3 nodes are available: 3 Insufficient memory.';
    const state = stateOfPod(
      pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] }),
      LIFETIME_S,
    );
    expect(state).toEqual({ state: 'waiting', phase: 'schedule', why: message, stuck: false });
    expect(stateOfPod(pod({}), LIFETIME_S)).toMatchObject({ phase: 'schedule' });
  });

  test.each([
    ['ContainerCreating', 'pull', false],
    ['PodInitializing', 'start', false],
    ['ErrImagePull', 'pull', true],
    ['ImagePullBackOff', 'pull', true],
    ['RegistryUnavailable', 'pull', true],
  ])('%s is waited for', (reason, phase, stuck) => {
    expect(
      stateOfPod(waits(reason, reason.startsWith('Err') ? 'i/o timeout' : ''), LIFETIME_S),
    ).toMatchObject({
      ...{ state: 'waiting', phase, stuck },
    });
  });

  test('for an image after too many pulls goes on waiting: the kubelet tries again', () => {
    const said = 'toomanyrequests: You have reached your pull rate limit';
    expect(stateOfPod(waits('ErrImagePull', said), LIFETIME_S)).toMatchObject({
      state: 'waiting',
      why: said,
    });
  });

  test('runs once its container does', () => {
    const scheduled = pod({
      ...{ phase: 'Running', conditions: [SCHEDULED] },
      containerStatuses: [{ name: 'main', state: { running: {} } }],
    });
    expect(stateOfPod(scheduled, LIFETIME_S)).toEqual({ state: 'running' });
  });
});

describe('a pod that cannot start', () => {
  test.each([
    ['ErrImagePull', 'manifest for x:1 not found: manifest unknown', 'image_missing', 'missing'],
    [
      'ImagePullBackOff',
      'rpc error: desc = failed to resolve reference: not found',
      'image_missing',
      'missing',
    ],
    [
      'ErrImagePull',
      'pull access denied for x, repository does not exist or may require docker login',
      'image_pull_failed',
      'no_access',
    ],
    ['ErrImagePull', 'no matching manifest for linux/arm64', 'image_pull_failed', 'wrong_platform'],
    ['InvalidImageName', 'couldn\'t parse image reference "A:B"', 'image_missing', undefined],
    ['ErrImageNeverPull', '', 'image_missing', undefined],
    ['CreateContainerConfigError', 'secret "x" not found', 'start_failed', undefined],
    ['CreateContainerError', 'context deadline exceeded', 'start_failed', undefined],
  ])('%s (%s) is %s', (reason, message, code, sub) => {
    const found = fault(waits(reason, message));
    expect(found).toMatchObject({ code, ...(sub && { sub }) });
    expect(found).toHaveProperty('message', expect.stringContaining(message));
  });

  test.each(['OutOfcpu', 'OutOfmemory', 'OutOfpods', 'NodeAffinity', 'UnexpectedAdmissionError'])(
    'a node that does not admit it (%s) is asked nothing more, and another pod is tried',
    (reason) => {
      expect(
        fault(pod({ phase: 'Failed', reason, message: 'Node did not have enough resource' })),
      ).toMatchObject({ code: 'start_failed', again: true });
    },
  );
});

describe('a pod that ended', () => {
  const at = (s: number) => new Date(s * 1000);

  test('by its memory limit: what ran in it did that', () => {
    expect(fault(ended({ reason: 'OOMKilled', exitCode: 137 }))).toMatchObject({
      ...{ code: 'died', sub: 'oom', fromWithin: true },
    });
  });

  test('by its own lifetime, or by that of the pod: a person may raise it', () => {
    const own = ended({ reason: 'Completed', exitCode: 0, startedAt: at(0), finishedAt: at(LIFETIME_S) });
    expect(fault(own)).toMatchObject({ code: 'died', sub: 'expired' });
    const early = ended({ reason: 'Completed', exitCode: 0, startedAt: at(0), finishedAt: at(60) });
    expect(fault(early)).toMatchObject({ code: 'died', sub: 'killed' });
    expect(fault(pod({ phase: 'Failed', reason: 'DeadlineExceeded' }))).toMatchObject({ sub: 'expired' });
  });

  test.each([
    'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ',
    'Container main exceeded its local ephemeral storage limit "1Gi". ',
  ])('by eviction for its own writing (%s) is disk_full', (message) => {
    expect(fault(ended({ reason: 'Error', exitCode: 137 }, { reason: 'Evicted', message }))).toMatchObject({
      ...{ code: 'disk_full', fromWithin: true },
    });
  });

  test.each([
    ['Evicted', 'The node was low on resource: memory. Container other was using 9Gi'],
    ['Evicted', 'The node had condition: [DiskPressure]. '],
    ['NodeLost', 'Node gone which was running pod p is unresponsive'],
    ['NodeShutdown', 'Pod was terminated in response to imminent node shutdown.'],
    ['Terminated', 'Pod was terminated in response to imminent node shutdown.'],
    ['Preempting', 'Preempted in order to admit critical pod'],
  ])('%s by the node (%s) is lost, and nobody in it did that', (reason, message) => {
    const found = fault(ended({ reason: 'Error', exitCode: 137 }, { reason, message }));
    expect(found).toMatchObject({ code: 'died', sub: 'daemon_lost' });
    expect(found).not.toHaveProperty('fromWithin', true);
  });

  test('by a person or by the cluster is told apart', () => {
    const gone = { deletionTimestamp: new Date() };
    expect(fault(pod({ phase: 'Running' }, gone))).toMatchObject({ code: 'died', sub: 'killed' });
    const conditions = [
      { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager', message: 'NoExecute' },
    ];
    expect(fault(pod({ phase: 'Running', conditions }, gone))).toMatchObject({ sub: 'daemon_lost' });
  });

  test('by a signal that nobody can explain counts as infrastructure', () => {
    expect(fault(ended({ reason: 'Error', exitCode: 137 }))).toMatchObject({ code: 'died', sub: 'killed' });
    expect(fault(ended({ reason: 'Error', exitCode: 137 }))).not.toHaveProperty('fromWithin', true);
    expect(fault(ended({ reason: 'ContainerStatusUnknown', exitCode: 137 }))).toMatchObject({
      sub: 'daemon_lost',
    });
  });
});

describe('a pod with the relay of an installed agent', () => {
  const both = (relay: Record<string, unknown>, main: Record<string, unknown> = { running: {} }): V1Pod =>
    pod({
      ...{ phase: 'Running', conditions: [SCHEDULED] },
      containerStatuses: [
        { name: 'main', state: main },
        { name: 'swebatch-relay', state: relay },
      ],
    });

  test('runs once both containers do', () => {
    expect(stateOfPod(both({ running: {} }), LIFETIME_S)).toEqual({ state: 'running' });
    expect(stateOfPod(both({ waiting: { reason: 'ContainerCreating' } }), LIFETIME_S)).toMatchObject({
      state: 'waiting',
    });
    expect(fault(both({ waiting: { reason: 'CreateContainerError', message: 'no sh' } }))).toMatchObject({
      code: 'start_failed',
    });
  });

  test('whose relay has ended is lost, whatever ended it, and the agent did not do that', () => {
    for (const reason of ['Error', 'OOMKilled', 'Completed']) {
      const found = fault(both({ terminated: { reason, exitCode: 137 } }));
      expect(found).toMatchObject({ code: 'died', sub: 'relay' });
      expect(found).not.toHaveProperty('fromWithin', true);
    }
    expect(fault(both({ terminated: { reason: 'ContainerCannotRun', exitCode: 127 } }))).toMatchObject({
      code: 'start_failed',
    });
  });

  test('whose own container has met its memory limit ended by that, also when the relay ended too', () => {
    const gone = { terminated: { reason: 'Error', exitCode: 137 } };
    expect(fault(both(gone, { terminated: { reason: 'OOMKilled', exitCode: 137 } }))).toMatchObject({
      ...{ sub: 'oom', fromWithin: true },
    });
  });
});
