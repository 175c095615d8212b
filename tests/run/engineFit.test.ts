// An engine of another processor, or with a wrong clock, is refused by name before anything is made or paid.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterEach, describe, expect, test } from 'vitest';
import { type EngineInfo, engineInfo } from '../../src/environment/places/engineInfo.ts';
import { engineFindings } from '../../src/run/plan/engineFit.ts';
import { DOCKER_INFO, type ToldEngine, toldEngine } from '../environment/places/engines/toldEngine.ts';
import { cli, tempDir } from '../support/cli.ts';

const MINUTE = 60_000;
const engines: ToldEngine[] = [];
afterEach(() => {
  for (const engine of engines.splice(0)) engine.close();
});

/** As Docker writes it, with nanoseconds. */
const clock = (aheadMs: number) => new Date(Date.now() + aheadMs).toISOString().replace('Z', '123456Z');
async function engine(more: { Architecture?: string; aheadMs?: number | null } = {}) {
  const { aheadMs = 0, ...facts } = more;
  const told = await toldEngine(() => ({
    ...DOCKER_INFO,
    ...facts,
    ...(aheadMs !== null && { SystemTime: clock(aheadMs) }),
  }));
  engines.push(told);
  return told;
}
const ask = ({ address }: ToldEngine) => {
  const { hostname, port } = new URL(address);
  return engineInfo(new Docker({ host: hostname, port }));
};

const info = (architecture: string, clockAheadMs = 0) =>
  ({ ok: true, architecture, clockAheadMs }) as unknown as EngineInfo;
const asked = (...infos: EngineInfo[]) => infos.map((one, i) => ({ what: `engine e${i}`, engine: one }));
const ANY = { platform: undefined, emulation: true };
const refused = (infos: EngineInfo[], wanted: Parameters<typeof engineFindings>[1] = ANY) =>
  engineFindings(asked(...infos), wanted).map(({ what, ok }) => `${what} ${ok}`);

describe('the clock of an engine', () => {
  test.each([
    ['right', 0, 0],
    ['an hour ahead', 60 * MINUTE, 60],
    ['an hour behind', -60 * MINUTE, -60],
    ['one that tells no time', null, 0],
  ])('%s', async (_what, aheadMs, minutes) => {
    const told = await ask(await engine({ aheadMs }));
    expect(told.ok && Math.round(told.clockAheadMs / MINUTE) + 0).toBe(minutes);
  });

  test('an hour off is refused with the side and the fix, four minutes are not', () => {
    expect(engineFindings(asked(info('x86_64', 61 * MINUTE), info('x86_64', -60 * MINUTE)), ANY)).toEqual([
      expect.objectContaining({
        what: 'engine e0',
        ok: false,
        detail: expect.stringContaining('61 min ahead'),
      }),
      expect.objectContaining({
        detail: expect.stringContaining('60 min behind'),
        fix: expect.stringContaining('NTP'),
      }),
    ]);
    expect(refused([info('x86_64', 4 * MINUTE), info('x86_64', -4 * MINUTE)])).toEqual([]);
  });
});

describe('the processor of an engine', () => {
  const [amd, arm] = [info('x86_64'), info('aarch64')];
  test.each([
    ['all alike', [amd, amd], ANY, []],
    ['one arm64 among amd64', [amd, arm, amd], ANY, ['engine e1 false']],
    ['of one and one the first counts', [amd, arm], ANY, ['engine e1 false']],
    [
      'environment.platform decides',
      [amd, arm, amd],
      { platform: 'linux/arm64/v8', emulation: true },
      ['engine e0 false', 'engine e2 false'],
    ],
    ['all are of another one, which emulate', [arm, arm], { platform: 'linux/amd64', emulation: true }, []],
    [
      'and may not',
      [arm, arm],
      { platform: 'linux/amd64', emulation: false },
      ['engine e0 false', 'engine e1 false'],
    ],
    ['one that does not answer is asked later', [amd, { ok: false, message: 'gone' } as const], ANY, []],
    ['one that does not say', [amd, info('')], ANY, []],
  ])('%s', (_what, infos, wanted, expected) => {
    expect(refused(infos, wanted)).toEqual(expected);
  });
});

test('run ends with 2 and names engine and fix before anything is made', async () => {
  const folder = tempDir('swebatch-fit-');
  const row = {
    ...{ instance_id: 'a__a-1', repo: 'a/a', base_commit: 'a'.repeat(40), image: 'swebatch-test/none:1' },
    ...{ problem_statement: 'x', patch: '', test_patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' },
  };
  writeFileSync(join(folder, 'data.jsonl'), `${JSON.stringify(row)}\n`);
  const [right, arm, late] = [
    await engine(),
    await engine({ Architecture: 'aarch64' }),
    await engine({ aheadMs: 60 * MINUTE }),
  ];
  const hosts = JSON.stringify([right, arm, late].map(({ address }) => ({ host: address, slots: 1 })));
  const given = ['-m', 'gpt-4o', '-c', `environment.hosts=${hosts}`];
  const env = { OPENAI_API_KEY: 'sk-test-0123456789' };
  const subset = ['--subset', join(folder, 'data.jsonl'), '-o', join(folder, 'out')];
  const run = await cli(['run', ...subset, ...given], { cwd: folder, env });
  expect(run.code).toBe(2);
  expect(run.stderr).toContain(`engine ${arm.address}: it runs linux/arm64 and most engines run linux/amd64`);
  expect(run.stderr).toContain('take it out of environment.hosts');
  expect(run.stderr).toMatch(new RegExp(`engine ${late.address}: its clock is 60 min ahead.*NTP`));
  expect(run.stderr).not.toContain(`engine ${right.address}:`);
  expect(existsSync(join(folder, 'out'))).toBe(false);
  // Options are asked about with an image that no engine has, so that nothing is made.
  const asks = (one: string) =>
    one.startsWith('GET ') || one.includes('&Image=swebatch.internal%2Fnothing%3Anone&');
  for (const { asked: questions } of engines) expect(questions.filter((one) => !asks(one))).toEqual([]);

  const doctor = await cli(['doctor', ...given, '-o', join(folder, 'out')], { cwd: folder, env });
  expect(doctor.code).toBe(2);
  expect(doctor.stdout).toContain(`FAIL Docker ${arm.address}: it runs linux/arm64`);
});
