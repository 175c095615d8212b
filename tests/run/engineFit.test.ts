// An engine of another processor, or with a wrong clock, is refused by name before anything is made or paid.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterEach, describe, expect, test } from 'vitest';
import { type EngineInfo, engineInfo } from '../../src/environment/places/engineInfo.ts';
import { clockFindings, platformFindings } from '../../src/run/plan/engineChecks.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';
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
    const found = (minutes: number) =>
      clockFindings({ engine: info('x86_64', minutes * MINUTE), engineName: 'engine' });
    expect(found(61)).toEqual([
      expect.objectContaining({
        ...{ what: 'engine', ok: false },
        detail: expect.stringContaining('61 min ahead'),
        fix: expect.stringContaining('NTP'),
      }),
    ]);
    expect(found(-60)).toMatchObject([{ detail: expect.stringContaining('60 min behind') }]);
    expect([...found(4), ...found(-4)]).toEqual([]);
  });
});

test.each([
  ['no platform is asked for', info('aarch64'), { platform: undefined, emulation: false }, 0],
  ['its own', info('aarch64'), { platform: 'linux/arm64/v8', emulation: false }, 0],
  ['another one, which it emulates', info('aarch64'), { platform: 'linux/amd64', emulation: true }, 0],
  ['and may not', info('aarch64'), { platform: 'linux/amd64', emulation: false }, 1],
  [
    'it does not answer',
    { ok: false, message: 'gone' } as const,
    { platform: 'linux/amd64', emulation: false },
    0,
  ],
  ['it does not say', info(''), { platform: 'linux/amd64', emulation: false }, 0],
])('the processor of an engine: %s', (_what, engine, wanted, count) => {
  const config = [
    `images.allow_emulation=${wanted.emulation}`,
    ...(wanted.platform === undefined ? [] : [`environment.platform=${wanted.platform}`]),
  ];
  const resolved = resolveConfig({ config, models: ['gpt-4o'] }, { env: {}, cwd: process.cwd() });
  expect(platformFindings({ ...resolved, engine, engineName: 'engine' })).toHaveLength(count);
});

test('run ends with 2 and names engine and fix before anything is made', async () => {
  const folder = tempDir('swebatch-fit-');
  const row = {
    ...{ instance_id: 'a__a-1', repo: 'a/a', base_commit: 'a'.repeat(40), image: 'swebatch-test/none:1' },
    ...{ problem_statement: 'x', patch: '', test_patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' },
  };
  writeFileSync(join(folder, 'data.jsonl'), `${JSON.stringify(row)}\n`);
  const told = await engine({ Architecture: 'aarch64', aheadMs: 60 * MINUTE });
  const given = [
    '-m',
    'gpt-4o',
    '-c',
    'environment.platform=linux/amd64',
    '-c',
    'images.allow_emulation=false',
  ];
  const env = { OPENAI_API_KEY: 'sk-test-0123456789', DOCKER_HOST: told.address };
  const subset = ['--subset', join(folder, 'data.jsonl'), '-o', join(folder, 'out')];
  const run = await cli(['run', ...subset, ...given], { cwd: folder, env });
  expect(run.code).toBe(2);
  expect(run.stderr).toContain('engine: it runs linux/arm64 and environment.platform is linux/amd64');
  expect(run.stderr).toMatch(/engine: its clock is 60 min ahead.*NTP/);
  expect(existsSync(join(folder, 'out'))).toBe(false);
  // Options are asked about with an image that no engine has, so that nothing is made.
  const asks = (one: string) =>
    one.startsWith('GET ') || one.includes('&Image=swebatch.internal%2Fnothing%3Anone&');
  expect(told.asked.filter((one) => !asks(one))).toEqual([]);

  const doctor = await cli(['doctor', ...given, '-o', join(folder, 'out')], { cwd: folder, env });
  expect(doctor.code).toBe(2);
  expect(doctor.stdout).toContain('FAIL Docker: it runs linux/arm64');
});
