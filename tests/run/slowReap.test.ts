// What dead processes left is swept on the way: an engine that is slow to sweep keeps no run from starting, and no other end state from being removed.
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { afterEach, expect, test, vi } from 'vitest';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { type MachineFacts, ownerLabels } from '../../src/environment/owner.ts';
import { workLabels } from '../../src/environment/places/leftovers.ts';
import type { Caller } from '../../src/run/caller.ts';
import { cleanWork, reapOrphans } from '../../src/run/places/sittingEngines.ts';
import type { ArmConfig } from '../../src/run/plan/planRecord.ts';
import { addRun, openFixture } from '../viewer/fixture.ts';

afterEach(() => void vi.useRealTimers());

test('a run begins, and says that it does not know what is left', async () => {
  const socket = join(mkdtempSync(join(tmpdir(), 'swebatch-slow-')), 'docker.sock');
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const told: string[] = [];
  const caller = {
    env: { DOCKER_HOST: `unix://${socket}` },
    tell: ({ text }: { text: string }) => void told.push(text),
  } as unknown as Caller;
  const arms = [{ name: 'a', environment: environmentConfigSchema.parse({}) }] as unknown as ArmConfig[];
  const reaping = reapOrphans(arms, caller);
  await asked.promise;
  await vi.advanceTimersByTimeAsync(20_000);
  await reaping;
  expect(told).toEqual([
    'what dead processes left on the engine is not known: the Docker daemon took the request and gave no answer within 20 s; the next run looks again',
  ]);
  server.closeAllConnections();
  server.close();
});

test('an end state that takes long to remove does not keep the others', async () => {
  const store = openFixture(mkdtempSync(join(tmpdir(), 'swebatch-slow-')));
  addRun(store, { name: 'r', instances: 2, steps: 1 });
  const machine: MachineFacts = { host: 'h', bootId: 'b', startTimeOf: () => undefined };
  const owner = { run: 'r', attempt: '1', pid: 4243, pidStart: '777', bootId: 'b', host: 'h' };
  const attempts = store.prepare('SELECT id FROM attempts ORDER BY id').pluck().all() as number[];
  const ids = ['one', 'two'];
  for (const [i, id] of ids.entries())
    store
      .prepare('UPDATE attempts SET container_id = ?, work_image = NULL WHERE id = ?')
      .run(id, attempts[i]);
  let there = ids;
  const nameOf = (id: string) => `swebatch.internal/work:${id}`;
  const docker = {
    listImages: async () =>
      there.map((id) => ({
        RepoTags: [nameOf(id)],
        Labels: workLabels(id, ownerLabels(owner, 'i', new Date(0))),
      })),
    getImage: (name: string) => ({
      inspect: async () => ({ Config: {} }),
      remove: async () => {
        if (name === nameOf('one')) throw new Error('the Docker daemon gave no answer within 60 s');
        there = there.filter((id) => nameOf(id) !== name);
      },
    }),
  } as unknown as Docker;
  const { removed, failed } = await cleanWork(docker, store, { dryRun: false, machine });
  expect([removed, failed].map((images) => images.map(({ name }) => name))).toEqual([
    [nameOf('two')],
    [nameOf('one')],
  ]);
  store.close();
});
