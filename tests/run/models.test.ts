// `swebatch models`: what a name means, and that no key is ever shown.
import { expect, test } from 'vitest';
import { cli } from '../support/cli.ts';

const KEY = 'sk-ant-canary-0123456789';

test('a name: dialect, address, key set or not, prices, context and longest answer', async () => {
  const env = { ANTHROPIC_API_KEY: KEY };
  const shown = await cli(['models', 'anthropic/claude-sonnet-4-5', '--json'], { env });
  expect(shown.code).toBe(0);
  expect(JSON.parse(shown.stdout)).toMatchObject({
    provider: 'anthropic',
    dialect: 'messages',
    sent_as: 'claude-sonnet-4-5',
    base_url: 'https://api.anthropic.com',
    key: 'ANTHROPIC_API_KEY',
    key_set: true,
    prices: { input: 3, output: 15 },
    context: 200_000,
    max_output: 64_000,
  });
  const text = await cli(['models', 'claude-sonnet-4-5'], { env });
  expect(text.stdout).toMatch(/key +\$ANTHROPIC_API_KEY, which is set/);
  expect(shown.stdout + text.stdout + text.stderr).not.toContain(KEY);
});

test('an address that a variable names is said with the variable', async () => {
  const env = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' };
  const [shown, text] = await Promise.all([
    cli(['models', 'my-model', '--json'], { env }),
    cli(['models', 'my-model'], { env }),
  ]);
  expect(JSON.parse(shown.stdout)).toMatchObject({
    base_url: 'http://127.0.0.1:9/v1',
    base_url_from: 'OPENAI_BASE_URL',
  });
  expect(text.stdout).toMatch(/address +http:\/\/127\.0\.0\.1:9\/v1 \(from \$OPENAI_BASE_URL\)/);
});

test('without a name the providers; a name that means nothing says what to write', async () => {
  const all = await cli(['models']);
  expect(all.code).toBe(0);
  for (const prefix of ['openai/', 'anthropic/', 'gemini/', 'hosted_vllm/'])
    expect(all.stdout).toContain(prefix);
  const wrong = await cli(['models', 'athropic/claude']);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(/no provider is known by the prefix.*anthropic\//s);
});
