// What an API server's refusals mean, by answers as servers gave them.
import { describe, expect, test } from 'vitest';
import { apiError, readApiFault } from '../../../src/environment/kubernetes/cluster.ts';
import { readExecEnd } from '../../../src/environment/kubernetes/podProcess.ts';

const answer = (code: number, message: string, more: Record<string, unknown> = {}) =>
  Object.assign(new Error(`HTTP-Code: ${code}`), {
    code,
    body: JSON.stringify({ kind: 'Status', status: 'Failure', message, code, ...more }),
  });

test.each([
  [401, 'Unauthorized', {}, 'credentials'],
  [
    403,
    'pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "n"',
    {},
    'forbidden',
  ],
  [
    403,
    'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2',
    {},
    'no_room',
  ],
  [
    403,
    'pods "p" is forbidden: unable to create new content in namespace n because it is being terminated',
    {},
    'namespace_gone',
  ],
  [
    403,
    'pods "p" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
    {},
    'refused',
  ],
  [400, 'admission webhook "policy.example" denied the request: no', {}, 'refused'],
  [403, 'admission webhook "policy.example" denied the request: no', {}, 'refused'],
  [403, 'pods "p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi', {}, 'refused'],
  [404, 'pods "p" not found', { details: { kind: 'pods' } }, 'gone'],
  [404, 'namespaces "n" not found', { details: { kind: 'namespaces' } }, 'namespace_gone'],
  [409, 'pods "p" already exists', { reason: 'AlreadyExists' }, 'again'],
  [
    409,
    'Operation cannot be fulfilled on resourcequotas "q": the object has been modified',
    { reason: 'Conflict' },
    'again',
  ],
  [410, 'too old resource version: 1 (2)', { reason: 'Expired' }, 'again'],
  [422, 'Pod "p" is invalid: spec.containers[0].image: Required value', { reason: 'Invalid' }, 'refused'],
  [429, 'too many requests', {}, 'away'],
  [500, 'etcdserver: request timed out', {}, 'away'],
  [503, 'the server is currently unable to handle the request', {}, 'away'],
])('%i "%s" is %s', (code, message, more, meaning) => {
  const fault = readApiFault(answer(code, message, more));
  expect(fault).toEqual({ meaning, status: code, text: message });
});

describe('answers that are no Status', () => {
  test('of the network and of a proxy', () => {
    const refused = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 10.0.0.1:6443') });
    expect(readApiFault(refused)).toEqual({
      ...{ meaning: 'away', status: undefined, text: 'connect ECONNREFUSED 10.0.0.1:6443' },
    });
    const page = Object.assign(new Error('x'), { code: 502, body: '<html>Bad Gateway</html>' });
    expect(readApiFault(page)).toEqual({ meaning: 'away', status: 502, text: '<html>Bad Gateway</html>' });
    expect(readApiFault(Object.assign(new Error('x'), { code: 418, body: null }))).toMatchObject({
      text: 'the API server answered 418',
    });
  });

  test('an expired token says what to do, and the attempt is lost to the cluster', () => {
    const error = apiError(answer(401, 'Unauthorized'), 'the pod of x could not be made');
    expect(error.code).toBe('daemon_lost');
    expect(error.message).toBe(
      'the pod of x could not be made: Unauthorized; the token may have expired: log in to the cluster again and resume',
    );
  });
});

describe('the last message of a stream', () => {
  test('holds the exit code, or why nothing was started', () => {
    expect(readExecEnd('{"metadata":{},"status":"Success"}')).toEqual({ code: 0, words: '' });
    const failed = {
      ...{
        status: 'Failure',
        message: 'command terminated with non-zero exit code',
        reason: 'NonZeroExitCode',
      },
      details: { causes: [{ reason: 'ExitCode', message: '137' }] },
    };
    expect(readExecEnd(JSON.stringify(failed))).toEqual({ code: 137, words: '' });
    expect(readExecEnd('{"status":"Failure","message":"container not found"}')).toEqual({
      words: 'container not found',
    });
    expect(readExecEnd('no JSON')).toEqual({ words: 'no JSON' });
  });
});
