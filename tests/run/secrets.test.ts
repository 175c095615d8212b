// Which variables of the environment are secrets, and which are words that stand in many texts.
import { describe, expect, test } from 'vitest';
import { loadedSecrets, ordinarySecrets, redactorOf } from '../../src/run/secrets.ts';

const namesIn = (env: Record<string, string>, names: readonly string[] = []) =>
  loadedSecrets(env, names).map(({ name }) => name);

describe('secrets of the environment', () => {
  test.each([
    ['DB_PASSWORD', 'sunday'],
    ['POSTGRES_PASSWORD', 'content'],
    ['APP_SECRET', 'development-secret-for-testing'],
    ['GOOGLE_APPLICATION_CREDENTIALS', '/home/me/keys/account-1a2b3c4d5e6f.json'],
    ['ID_TOKEN', 'https://login.example.org/tokens/1a2b3c4d'],
    ['BUILD_TOKEN', '20261122-123456-000001'],
    ['EDITOR', 'Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA'],
  ])('%s=%s is none', (name, value) => expect(namesIn({ [name]: value })).toEqual([]));

  test.each([
    ['DB_PASSWORD', 'q8#Lr2!vXz0pTn5@Yc7w'],
    ['CI_TOKEN', '5f2b7c9d41aae0b3f6d18c27'],
    ['SOME_API_KEY', 'sk-canary-1234567'],
    ['AWS_SECRET_ACCESS_KEY', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'],
    ['AWS_SESSION_TOKEN', 'a-word'],
    ['AZURE_CLIENT_SECRET', 'another-word'],
    ['DEPLOY_TOKEN', 'company-internal-production-deploy-20261126'],
    ['GH_TOKEN', `ghp_${'a1B2'.repeat(9)}`],
    ['DB_CREDENTIALS', 'https://me:hunter22hunter@db.example.org/x'],
  ])('%s=%s looks like one', (name, value) => expect(namesIn({ [name]: value })).toEqual([name]));

  test('what a run uses and what a person names is one whatever it looks like', () => {
    const env = {
      MY_KEY: 'sunday',
      HF_TOKEN: 'monday',
      DB_PASSWORD: 'content',
      OTHER_PASSWORD: 'tuesday',
      HTTPS_PROXY: 'http://me:letmein@proxy:1',
      SWEBATCH_SECRETS: 'DB_PASSWORD, NOT_SET',
    };
    expect(namesIn(env, ['MY_KEY'])).toEqual(['MY_KEY', 'HF_TOKEN', 'DB_PASSWORD', 'PROXY', 'PROXY']);
    expect(ordinarySecrets(env, ['MY_KEY'])).toEqual(['MY_KEY', 'HF_TOKEN', 'DB_PASSWORD', 'PROXY']);
    for (const key of [
      'sk-canary-7Q2x/9vLw+Zk41TmR8',
      'sk-canary-12345678',
      'sk-proj-correct-horse-battery',
      'company-production-key-one',
      'correct-horse-battery-staple-of-mine',
    ])
      expect(ordinarySecrets({ MY_KEY: key }, ['MY_KEY'])).toEqual([]);
  });

  test('a password that is a word changes no log', () => {
    const log = 'PASSED t.py::test_sunday\n';
    expect(redactorOf({ DB_PASSWORD: 'sunday' }).text(log)).toBe(log);
  });
});
