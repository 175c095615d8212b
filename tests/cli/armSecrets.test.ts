// Secrets of this machine that somebody wrote into what goes into a container.
import { expect, test } from 'vitest';
import { findingsOf } from '../../src/run/plan/checks.ts';
import { planFacts } from '../../src/run/plan/planFacts.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';

async function refusals(environment: object, env: Record<string, string>) {
  const settings = { environment: { ...environment }, model: { api_key_env: 'MY_OWN_KEY' } };
  const caller = { env, cwd: process.cwd() };
  const facts = planFacts(resolveConfig({ models: ['gpt-4o'], settings }, caller), caller);
  return (await findingsOf('configuration', 'run', facts)).filter(({ what }) =>
    what.startsWith('environment'),
  );
}

test.each([
  ['MY_OWN_KEY', { env: { TOKEN: 'sk-canary-1234567' } }, 'environment.env.TOKEN'],
  ['SOME_API_KEY', { env: { URL: 'https://x:sk-canary-1234567@host/' } }, 'environment.env.URL'],
  [
    'GITHUB_TOKEN',
    { startup_command: 'git clone https://sk-canary-1234567@h/x' },
    'environment.startup_command',
  ],
])('the value of $%s is refused by name, and not shown', async (name, environment, where) => {
  const [finding, ...others] = await refusals(environment, { [name]: 'sk-canary-1234567' });
  expect(others).toEqual([]);
  expect(finding).toMatchObject({
    ok: false,
    detail: expect.stringContaining(`${where} holds the value of $${name}`),
  });
  expect(JSON.stringify(finding)).not.toContain('sk-canary');
});

test('anything else is the user’s own', async () => {
  const own = { env: { A: 'b', C: '‹redacted:MY_OWN_KEY›' }, startup_command: 'true' };
  expect(await refusals(own, { MY_OWN_KEY: 'sk-canary-1234567' })).toEqual([]);
});
