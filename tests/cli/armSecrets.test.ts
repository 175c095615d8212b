// Secrets of this machine that somebody wrote into what goes into a container.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { secretFindings } from '../../src/run/plan/armChecks.ts';

type Arm = Parameters<typeof secretFindings>[0];
const armWith = (environment: { env?: Record<string, string>; startup_command?: string }) =>
  ({
    name: 'a',
    model: { api_key_env: 'MY_OWN_KEY' },
    environment: { env: {}, ...environment },
  }) as unknown as Arm;

describe('secrets in the configuration of containers', () => {
  afterEach(() => vi.unstubAllEnvs());

  test.each([
    ['MY_OWN_KEY', { env: { TOKEN: 'sk-canary-1234567' } }, 'environment.env.TOKEN'],
    ['SOME_API_KEY', { env: { URL: 'https://x:sk-canary-1234567@host/' } }, 'environment.env.URL'],
    [
      'GITHUB_TOKEN',
      { startup_command: 'git clone https://sk-canary-1234567@h/x' },
      'environment.startup_command',
    ],
  ])('the value of $%s is refused by name, and not shown', (name, environment, where) => {
    vi.stubEnv(name, 'sk-canary-1234567');
    const [finding, ...others] = secretFindings(armWith(environment), process.env);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      ok: false,
      detail: expect.stringContaining(`${where} holds the value of $${name}`),
    });
    expect(JSON.stringify(finding)).not.toContain('sk-canary');
  });

  test('anything else is the user’s own', () => {
    vi.stubEnv('MY_OWN_KEY', 'sk-canary-1234567');
    const own = { env: { A: 'b', C: '‹redacted:MY_OWN_KEY›' }, startup_command: 'true' };
    expect(secretFindings(armWith(own), process.env)).toEqual([]);
  });
});
