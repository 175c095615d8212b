// An engine that takes limits and starts containers without them is refused before a run is made, and doctor says so. The answers are those of Podman 4.3.1.
import { createServer } from 'node:http';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withEngine } from '../../src/environment/places/chosenEngine.ts';
import { engineInfo } from '../../src/environment/places/engineInfo.ts';
import { findingsOf } from '../../src/run/plan/checks.ts';
import { planFacts } from '../../src/run/plan/planFacts.ts';
import { preflight } from '../../src/run/plan/preflight.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';
import { tempDir } from '../support/cli.ts';

const PODMAN = {
  ServerVersion: '4.3.1',
  Driver: 'overlay',
  BuildahVersion: '1.28.2',
  CgroupVersion: '1',
  MemoryLimit: true,
  PidsLimit: true,
  Rootless: false,
};
const folder = tempDir('swebatch-limits-');
const socketPath = join(folder, 'engine.sock');
let answer: object = {};
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
});
beforeAll(() => new Promise<void>((listening) => server.listen(socketPath, listening)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Another engine at the same address. */
const infoOf = (more: object) => {
  answer = more;
  return engineInfo(new Docker({ socketPath }), { again: true });
};
const caller = {
  env: { DOCKER_HOST: `unix://${socketPath}`, OPENAI_API_KEY: 'sk-test-0123456789' },
  cwd: folder,
  tell: () => undefined,
};
const configured = (...config: string[]) => resolveConfig({ models: ['gpt-5.4'], config }, caller);
const checked = (...config: string[]) =>
  withEngine(
    () => ({ socketPath }),
    () => preflight(configured(...config), caller, false),
  );
const NO_LIMITS = ['environment.memory="0"', 'environment.pids_limit=0', 'environment.cpus=0'];

describe('which engine enforces limits', () => {
  test.each([
    ['Docker', { ServerVersion: '20.10' }, 'Docker', false],
    ['Docker that says it has no limits is left as it was', { MemoryLimit: false }, 'Docker', false],
    ['Podman of root', PODMAN, 'Podman', false],
    ['rootless on cgroup v2', { ...PODMAN, Rootless: true, CgroupVersion: '2' }, 'Podman', false],
    ['rootless on cgroup v1, which claims limits', { ...PODMAN, Rootless: true }, 'Podman', true],
    ['one that says it has none for memory', { ...PODMAN, MemoryLimit: false }, 'Podman', true],
    ['one that says it has none for processes', { ...PODMAN, PidsLimit: false }, 'Podman', true],
  ])('%s', async (_what, info, name, limitsIgnored) => {
    expect(await infoOf(info)).toMatchObject({ ok: true, name, limitsIgnored });
  });
});

test('a run whose limits would be ignored is refused, and told which keys to set', async () => {
  await infoOf({ ...PODMAN, Rootless: true });
  await expect(checked()).rejects.toThrow(
    /Podman 4\.3\.1, rootless, on cgroup v1 does not enforce limits.*set environment\.memory="0", environment\.pids_limit=0, environment\.cpus=0/,
  );
  await expect(checked(...NO_LIMITS)).resolves.toBeUndefined();
  await expect(checked(...NO_LIMITS, 'grading.enabled=true')).rejects.toThrow(
    /set grading\.memory="0", grading\.pids_limit=0/,
  );
  await infoOf(PODMAN);
  await expect(checked()).resolves.toBeUndefined();
});

test('doctor says it also where the configuration asks for no limit', async () => {
  const engine = await infoOf({ ...PODMAN, Rootless: true });
  const facts = { ...planFacts(configured(...NO_LIMITS), caller), engine };
  expect(await findingsOf('places', 'doctor', facts)).toContainEqual(
    expect.objectContaining({ ok: true, detail: expect.stringContaining('asks for none') }),
  );
});
