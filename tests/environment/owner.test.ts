// Who may be reaped: only what is proven dead, and never anybody else's.
import type Docker from 'dockerode';
import { afterEach, describe, expect, test } from 'vitest';
import {
  currentOwner,
  isOwnerAlive,
  LABELS,
  type MachineFacts,
  ownerLabels,
  thisMachine,
} from '../../src/environment/owner.ts';
import { leftoversOf, listContainers, reap } from '../../src/environment/places/leftovers.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { BASE_IMAGE } from '../support/dockerEnvironment.ts';

const owner = { run: 'r', attempt: '1', pid: 4242, pidStart: '777', bootId: 'boot-a', host: 'host-a' };
const labels = (change: Record<string, string> = {}) => ({
  ...ownerLabels(owner, 'i', new Date(0)),
  ...change,
});
const machine = (more: Partial<MachineFacts> = {}): MachineFacts => ({
  host: 'host-a',
  bootId: 'boot-a',
  startTimeOf: (pid) => (pid === 4242 ? '777' : undefined),
  ...more,
});

describe('isOwnerAlive', () => {
  test.each<[string, Record<string, string>, MachineFacts, string]>([
    ['same process', labels(), machine(), 'alive'],
    ['no such process', labels({ [LABELS.pid]: '4243' }), machine(), 'dead'],
    ['pid reused by a later process', labels(), machine({ startTimeOf: () => '778' }), 'dead'],
    ['machine booted again', labels(), machine({ bootId: 'boot-b' }), 'dead'],
    ['another machine', labels(), machine({ host: 'host-b' }), 'unknown'],
    ['another machine that booted again', labels(), machine({ host: 'host-b', bootId: 'boot-b' }), 'unknown'],
    [
      'a process of another pid namespace (two containers on the network of one host share its name and boot)',
      labels({ [LABELS.pidNamespace]: 'pid:[1]' }),
      machine({ pidNamespace: 'pid:[2]', startTimeOf: () => undefined }),
      'unknown',
    ],
    [
      'another pid namespace before the machine booted again',
      labels({ [LABELS.pidNamespace]: 'pid:[1]' }),
      machine({ pidNamespace: 'pid:[2]', bootId: 'boot-b' }),
      'dead',
    ],
    ['no pid', labels({ [LABELS.pid]: '' }), machine(), 'unknown'],
    ['a pid that is no number', labels({ [LABELS.pid]: '12x' }), machine(), 'unknown'],
    ['no start time', labels({ [LABELS.pidStart]: '' }), machine(), 'unknown'],
    ['no boot id', labels({ [LABELS.bootId]: '' }), machine(), 'unknown'],
    ['a machine that does not know its boot id', labels(), machine({ bootId: '' }), 'unknown'],
    ['no labels', {}, machine(), 'unknown'],
  ])('%s [T-51]', (_name, of, on, expected) => {
    expect(isOwnerAlive(of, on)).toBe(expected);
  });

  test('this very process is alive', () => {
    expect(isOwnerAlive(ownerLabels(currentOwner('r', '1'), 'i', new Date()), thisMachine())).toBe('alive');
  });
});

/** Takes every question and answers none but the list. */
const lockedUp = (containers: readonly object[] | null): Docker => {
  const never = () => new Promise<never>(() => {});
  return {
    listContainers: containers === null ? never : async () => containers,
    getImage: () => ({ inspect: async () => ({ Config: { Labels: null } }) }),
    getContainer: () => ({ remove: never }),
  } as unknown as Docker;
};

describe('a daemon that has locked up', () => {
  const orphan = {
    Id: 'c1',
    Names: ['/swebatch-x'],
    Image: 'i',
    State: 'running',
    Labels: labels({ [LABELS.pid]: '4243' }),
  };

  test('over one container keeps nobody waiting for its removal [T-35]', async () => {
    const result = await reap({ docker: lockedUp([orphan]), machine: machine(), limitMs: 10 });
    expect(result.failed).toMatchObject([{ name: 'swebatch-x', unanswered: true }]);
    expect(result.removed).toEqual([]);
  });

  test('altogether is told as one that does not answer [T-35]', async () => {
    await expect(reap({ docker: lockedUp(null), machine: machine(), limitMs: 10 })).rejects.toThrow(
      'the Docker daemon took the request and gave no answer within 0.01 s',
    );
  });
});

const available = await dockerAvailable();
describe.skipIf(!available)('reaper', () => {
  // A machine that does not exist: every run that begins here meanwhile reaps what is dead here, and what is reaped here is nobody else's.
  const here = machine({ host: `reaper-test-${process.pid}` });
  const mine = labels({ [LABELS.host]: here.host });
  const made: string[] = [];
  const create = async (of: Record<string, string>) => {
    const container = await docker.createContainer({
      Image: BASE_IMAGE,
      Cmd: ['sleep', '60'],
      Labels: of,
      HostConfig: { NetworkMode: 'none' },
    });
    made.push(container.id);
    return container.id;
  };
  afterEach(async () => {
    for (const id of made.splice(0))
      await docker
        .getContainer(id)
        .remove({ force: true })
        .catch(() => undefined);
  });

  test('removes exactly the containers whose owner is dead', async () => {
    const dead = await create({ ...mine, [LABELS.run]: 'dead-run', [LABELS.pidStart]: '1' });
    const rebooted = await create({ ...mine, [LABELS.run]: 'old-run', [LABELS.bootId]: 'another-boot' });
    const alive = await create(mine);
    const elsewhere = await create({ ...mine, [LABELS.host]: 'another-host', [LABELS.pidStart]: '1' });
    const foreign = await create({ 'com.example': 'x' });
    const blank = await create(Object.fromEntries(Object.values(LABELS).map((l) => [l, ''])));
    const idsOf = (found: readonly { id: string }[]) => found.map((c) => c.id).sort();
    const mineOnly = (found: readonly { id: string }[]) => idsOf(found).filter((id) => made.includes(id));

    const dry = await reap({ docker, machine: here, dryRun: true });
    expect(idsOf(dry.orphans)).toEqual([dead, rebooted].sort());
    expect(dry.removed).toEqual([]);
    const result = await reap({ docker, machine: here });
    expect(idsOf(result.removed)).toEqual([dead, rebooted].sort());
    expect(result.failed).toEqual([]);
    // Containers of the runs of this machine are kept too, as those of another.
    expect(mineOnly(result.kept)).toEqual([alive, elsewhere, blank].sort());
    for (const id of [alive, elsewhere, foreign, blank])
      expect((await docker.getContainer(id).inspect()).Id).toBe(id);
    expect(mineOnly(await listContainers(docker, here))).toEqual([alive, elsewhere, blank].sort());
  });

  test('what a person makes from a committed container of ours is theirs, whatever labels it has', async () => {
    const gone = await create({ ...mine, [LABELS.pidStart]: '1' });
    const image = (await docker.getContainer(gone).commit({ repo: 'swebatch-envtest/committed' })) as {
      Id: string;
    };
    try {
      const theirs = await docker.createContainer({
        Image: image.Id,
        Cmd: ['sleep', '60'],
        Labels: { 'com.example': 'precious' },
        HostConfig: { NetworkMode: 'none' },
      });
      made.push(theirs.id);
      // A run on that image: what the run gives its container stands above what the image carries.
      const onIt = await docker.createContainer({
        Image: image.Id,
        Cmd: ['sleep', '60'],
        Labels: { ...mine, [LABELS.pidStart]: '1', [LABELS.started]: new Date(1).toISOString() },
        HostConfig: { NetworkMode: 'none' },
      });
      made.push(onIt.id);
      expect((await theirs.inspect()).Config.Labels).toMatchObject({ [LABELS.run]: 'r' });
      const result = await reap({ docker, machine: here });
      expect(result.removed.map(({ id }) => id).sort()).toEqual([gone, onIt.id].sort());
      expect(result.kept.map(({ id }) => id)).toContain(theirs.id);
      expect((await theirs.inspect()).Id).toBe(theirs.id);
      await theirs.remove({ force: true });
    } finally {
      await docker.getImage(image.Id).remove({ force: true });
    }
  });

  test('a container that got the labels of one of ours is not ours: its name is another', async () => {
    const name = `swebatch-named-${process.pid}`;
    const created = '2026-01-01T00:00:00.000Z';
    const labels = { [LABELS.run]: name, [LABELS.runCreated]: created, [LABELS.name]: name };
    const dead = { ...mine, ...labels, [LABELS.pidStart]: '1' };
    const makeOf = async (called: string) => {
      const container = await docker.createContainer({
        name: called,
        Image: BASE_IMAGE,
        Cmd: ['sleep', '60'],
        Labels: dead,
        HostConfig: { NetworkMode: 'none' },
      });
      made.push(container.id);
      return container;
    };
    const ours = await makeOf(name);
    const copied = await makeOf(`${name}-copied`);
    expect((await leftoversOf({ name, created_at: created }, []))!.containers).toEqual([name]);
    // A run of the same name in another results root.
    const theirs = { name, created_at: '2026-01-01T00:00:00.001Z' };
    expect((await leftoversOf(theirs, []))!.containers).toEqual([]);
    const result = await reap({ docker, machine: here });
    expect(result.removed.map(({ id }) => id)).toEqual([ours.id]);
    expect(result.kept.map(({ id }) => id)).toContain(copied.id);
    expect((await copied.inspect()).Id).toBe(copied.id);
  });

  test("a container of a name of ours, made from a committed container of ours that is gone, is a person's", async () => {
    const name = `swebatch-again-${process.pid}`;
    const created = '2026-01-01T00:00:00.000Z';
    const labels = { [LABELS.run]: name, [LABELS.runCreated]: created, [LABELS.name]: name };
    const dead = { ...mine, ...labels, [LABELS.pidStart]: '1' };
    const make = (image: string, labels: Record<string, string>) =>
      docker.createContainer({
        name,
        Image: image,
        Cmd: ['sleep', '60'],
        Labels: labels,
        HostConfig: { NetworkMode: 'none' },
      });
    const ours = await make(BASE_IMAGE, dead);
    made.push(ours.id);
    const image = (await ours.commit({ repo: 'swebatch-envtest/again' })) as { Id: string };
    try {
      expect((await reap({ docker, machine: here })).removed.map(({ id }) => id)).toEqual([ours.id]);
      const theirs = await make(image.Id, { 'com.example': 'precious' });
      made.push(theirs.id);
      expect((await theirs.inspect()).Config.Labels).toMatchObject({ [LABELS.name]: name });
      const result = await reap({ docker, machine: here });
      expect(result.removed).toEqual([]);
      expect(result.kept.map(({ id }) => id)).toContain(theirs.id);
      await theirs.remove({ force: true });
    } finally {
      await docker.getImage(image.Id).remove({ force: true });
    }
  });

  test('two reapers at once do not fail each other', async () => {
    const gone = { ...mine, [LABELS.pidStart]: '1' };
    await Promise.all([create(gone), create(gone), create(gone)]);
    const results = await Promise.all([reap({ docker, machine: here }), reap({ docker, machine: here })]);
    for (const { failed } of results) expect(failed).toEqual([]);
    expect(results.some(({ removed }) => removed.length > 0)).toBe(true);
    expect((await reap({ docker, machine: here, dryRun: true })).orphans).toEqual([]);
  });
});
