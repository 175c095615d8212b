// Which kept end states `clean` may remove: only those whose owner is dead and whose attempt the record has no use for.
import { rmSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { keepWork } from '../../src/environment/docker/dockerFactory.ts';
import { LABELS, type MachineFacts, ownerLabels } from '../../src/environment/owner.ts';
import { cleanWork } from '../../src/run/places/sittingEngines.ts';
import { insertEvaluation } from '../../src/store/records/evaluations.ts';
import { tempDir } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { BASE_IMAGE } from '../support/dockerEnvironment.ts';
import { addRun, openFixture } from '../viewer/fixture.ts';

const available = await dockerAvailable();
const host = `work-test-${process.pid}`;
/** A machine that does not exist, so that what is here is nobody else's. */
const machine: MachineFacts = {
  ...{ host, bootId: 'boot-a' },
  startTimeOf: (pid) => (pid === 4242 ? '777' : undefined),
};

describe.skipIf(!available)('end states on an engine', () => {
  const dir = tempDir();
  const store = openFixture(dir);
  addRun(store, { name: 'r', instances: 6, steps: 1 });
  // What is kept of a result is needed until there is a verdict.
  store.prepare('DELETE FROM evaluations').run();
  const attempts = store.prepare('SELECT id FROM attempts ORDER BY id').pluck().all() as number[];
  const names: string[] = [];
  afterAll(async () => {
    store.close();
    rmSync(dir, { recursive: true, force: true });
    for (const name of names)
      await docker
        .getImage(name)
        .remove()
        .catch(() => undefined);
  });

  async function kept(pid = 4243) {
    const owner = { run: 'r', attempt: '1', pid, pidStart: '777', bootId: 'boot-a', host };
    const container = await docker.createContainer({
      ...{ Image: BASE_IMAGE, Cmd: ['true'], Labels: ownerLabels(owner, 'i', new Date(0)) },
    });
    const name = await keepWork(docker, container);
    names.push(name);
    await container.remove({ force: true });
    return { name, container: container.id };
  }
  const recorded = (attempt: number, container: string, more: Record<string, string | null>) => {
    for (const [column, value] of Object.entries({ container_id: container, ...more }))
      store.prepare(`UPDATE attempts SET ${column} = ? WHERE id = ?`).run(value, attempt);
  };
  const ours = <T extends { host: string; name: string }>(images: readonly T[]) =>
    images
      .filter((image) => image.host === host)
      .map(({ name }) => name)
      .toSorted();

  test('the dead owner of an attempt without a result, of one with a verdict, or of a step that the record never saw, leaves them behind', async () => {
    const [cut, unseen, waiting, steps, nobodys, graded, alive] = [
      ...[await kept(), await kept(), await kept(), await kept(), await kept(), await kept()],
      await kept(4242),
    ];
    const result = { exit_class: 'agent', exit_reason: 'submitted' };
    const lost = { exit_class: 'cancelled', exit_reason: 'orchestrator_lost' };
    recorded(attempts[0]!, cut!.container, { work_image: cut!.name, ...lost });
    recorded(attempts[1]!, unseen!.container, { work_image: null, ...result });
    recorded(attempts[2]!, waiting!.container, { work_image: waiting!.name, ...result });
    const list = JSON.stringify([{ step: 'a', image: steps!.name }]);
    recorded(attempts[3]!, steps!.container, { work_image: list, ...result });
    recorded(attempts[4]!, alive!.container, { work_image: null, ...lost });
    recorded(attempts[5]!, graded!.container, { work_image: graded!.name, ...result });
    const { run_id } = store.prepare('SELECT run_id FROM trials').get() as { run_id: number };
    insertEvaluation(store, {
      ...{ run_id, attempt_id: attempts[5]!, instance_id: 'i', model: 'm', patch_sha256: '', spec_hash: '' },
      ...{
        harness: 'v5',
        outcome: 'unresolved',
        source: 'native',
        suspicion: '[]',
        started_at: '2026-01-01',
      },
    });
    // Made by a person from one of them: it has all labels, and a name of its own.
    await docker.getImage(cut!.name).tag({ repo: 'swebatch-test/of-a-person', tag: host });
    names.push(`swebatch-test/of-a-person:${host}`);

    const leave = [waiting, steps, nobodys, alive].map((image) => image!.name).toSorted();
    const asked = await cleanWork(docker, store, { dryRun: true, machine });
    expect(ours(asked.orphans)).toEqual([cut!.name, unseen!.name, graded!.name].toSorted());
    expect(asked.removed).toEqual([]);
    expect(ours(asked.kept)).toEqual(leave);

    expect(ours((await cleanWork(docker, undefined, { dryRun: false, machine })).orphans)).toEqual([]);
    const done = await cleanWork(docker, store, { dryRun: false, machine });
    expect(ours(done.removed)).toEqual([cut!.name, unseen!.name, graded!.name].toSorted());
    const after = await cleanWork(docker, store, { dryRun: true, machine });
    expect([ours(after.orphans), ours(after.kept)]).toEqual([[], leave]);
    await docker.getImage(`swebatch-test/of-a-person:${host}`).inspect();
  });

  test('a record that cannot be read, and a container of the image, keep it', async () => {
    const torn = await kept();
    recorded(attempts[0]!, torn.container, {
      work_image: '[{',
      exit_class: 'agent',
      exit_reason: 'submitted',
    });
    expect(ours((await cleanWork(docker, store, { dryRun: true, machine })).kept)).toContain(torn.name);
    recorded(attempts[0]!, torn.container, { work_image: null });
    const container = await docker.createContainer({ Image: torn.name, Cmd: ['true'] });
    try {
      const { Config } = await container.inspect();
      expect(Object.values(LABELS).map((label) => Config.Labels[label] ?? '')).toEqual(
        Object.values(LABELS).map(() => ''),
      );
      expect(ours((await cleanWork(docker, store, { dryRun: false, machine })).failed)).toEqual([torn.name]);
    } finally {
      await container.remove({ force: true });
    }
  });
});
