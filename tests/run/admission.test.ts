// An engine that was away when the run began, and answers later: it is checked before its first trial.
import Docker from 'dockerode';
import { afterEach, expect, test } from 'vitest';
import { engineInfo } from '../../src/environment/places/engineInfo.ts';
import { createEnginePool } from '../../src/environment/places/enginePool.ts';
import { createImageService, type ImageService } from '../../src/environment/places/imageService.ts';
import { imagesConfigSchema } from '../../src/environment/places/imagesConfig.ts';
import { imagesOfEngines } from '../../src/environment/places/places.ts';
import { createAdmission } from '../../src/run/places/openImages.ts';
import { DOCKER_INFO, type ToldEngine, toldEngine } from '../environment/places/engines/toldEngine.ts';
import { tempDir } from '../support/cli.ts';

const engines: ToldEngine[] = [];
afterEach(() => {
  for (const engine of engines.splice(0)) engine.close();
});

const { signal } = new AbortController();

/** Engines over HTTP that have every image; `is` changes what they say of themselves. */
async function several(...names: string[]) {
  const is: Record<string, { Architecture?: string; aheadMs?: number; away?: boolean }> = {};
  const dockers = new Map<string, Docker>();
  for (const name of names) {
    is[name] = {};
    const told = await toldEngine(() => {
      const { aheadMs = 0, away: _away, ...facts } = is[name]!;
      return { ...DOCKER_INFO, ...facts, SystemTime: new Date(Date.now() + aheadMs).toISOString() };
    });
    engines.push(told);
    const { hostname, port } = new URL(told.address);
    dockers.set(name, new Docker({ host: hostname, port }));
  }
  const ask = async (host: string) =>
    is[host]!.away ? { ok: false as const, message: 'away' } : engineInfo(dockers.get(host));
  const pool = createEnginePool(names.map((name) => ({ name, slots: 1, ping: async () => undefined })));
  const notes: string[] = [];
  const service = () =>
    ({
      stage: { ensure: async () => ({ warnings: [] }), placeOf: async () => 'here' },
      engine: { info: async () => ({}) },
      disk: { check: async () => ({ open: true }) },
    }) as unknown as ImageService;
  const admit = createAdmission({
    ...{ pool, ask, platform: { platform: undefined, emulation: true } },
    note: (text) => notes.push(text),
  });
  const config = { ahead: 0, policy: 'keep', disk_low: '0', pull: 'missing' } as const;
  const services = new Map(names.map((name) => [name, service()]));
  const images = imagesOfEngines(services, config, pool, undefined, admit);
  const hostOf = async () => {
    const { place } = await images.ready('x', signal);
    place!.release();
    return place!.host;
  };
  return { is, notes, hostOf, pool, images };
}

test('of another processor than the others: it gets nothing, and the note says why and what to do', async () => {
  const { is, notes, hostOf, pool } = await several('late', 'a', 'b');
  is.late = { away: true };
  // A pool that does not know that it is away.
  pool.lose('late', 'away');
  expect(await hostOf()).toBe('a');
  is.late = { Architecture: 'aarch64' };
  expect(await pool.takesNow('late')).toBe(true);
  expect([await hostOf(), await hostOf()]).not.toContain('late');
  expect(notes).toEqual([expect.stringMatching(/^engine late is refused.*linux\/arm64.*environment\.hosts/)]);
  expect(pool.alive()).not.toContain('late');
});

test('among those that are there at the first trial the most count, wherever they stand', async () => {
  const { is, notes, hostOf } = await several('arm', 'a', 'b');
  is.arm = { Architecture: 'aarch64' };
  expect(await hostOf()).toBe('a');
  expect(notes).toHaveLength(1);
});

test('with a clock an hour off: it gets nothing; one that does not answer yet is asked for the next trial', async () => {
  const { is, notes, hostOf, pool } = await several('a', 'b');
  is.a = { away: true };
  expect(await hostOf()).toBe('a');
  is.a = { aheadMs: 3_600_000 };
  expect(await hostOf()).toBe('b');
  expect(notes).toEqual([expect.stringContaining('its clock is 60 min ahead')]);
  expect(pool.alive()).toEqual(['b']);
});

test('a disk that is too full on an engine that is gone is told as full, not as an error of the trial', async () => {
  const dir = tempDir('swebatch-gone-');
  const { disk } = createImageService(
    { docker: new Docker({ socketPath: `${dir}/none.sock` }), dockerConfigDir: dir, stateDir: dir },
    {
      config: imagesConfigSchema.parse({ policy: 'remove-after' }),
      ...{ pull: 'never', stallSeconds: 1, free: async () => 1 },
    },
  );
  expect(await disk.check()).toMatchObject({ open: false, freeBytes: 1 });
});
