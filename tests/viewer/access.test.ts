import { describe, expect, test } from 'vitest';
import { type AccessFacts, type AccessRules, decide, hostsFor, isLoopback } from '../../src/viewer/server.ts';

const rules: AccessRules = {
  ...{ hosts: hostsFor('127.0.0.1', 7580, []), token: 's3cret', openToRead: true, cookie: 'c' },
};
const locked: AccessRules = { ...rules, openToRead: false };
const request = (more: Partial<AccessFacts> = {}): AccessFacts => ({
  method: 'GET',
  host: '127.0.0.1:7580',
  origin: undefined,
  fetchSite: undefined,
  visit: false,
  authorization: undefined,
  cookie: undefined,
  queryToken: undefined,
  ...more,
});
const statusOf = (decision: ReturnType<typeof decide>) => (decision.allow ? 200 : decision.status);

describe('who may talk to the viewer', () => {
  test.each([
    ['its own address', {}, 200],
    ['localhost', { host: 'LOCALHOST:7580' }, 200],
    ['IPv6 loopback', { host: '[::1]:7580' }, 200],
    ['a rebound name', { host: 'evil.example:7580' }, 403],
    ['a name that only starts like ours', { host: '127.0.0.1:7580.evil.example' }, 403],
    ['another port', { host: '127.0.0.1:80' }, 403],
    ['no port', { host: '127.0.0.1' }, 403],
    ['no host at all', { host: undefined }, 403],
    ['its own origin', { origin: 'http://127.0.0.1:7580' }, 200],
    ['another origin', { origin: 'http://evil.example' }, 403],
    ['another port of this machine', { origin: 'http://127.0.0.1:3000' }, 403],
    ['a sandboxed frame', { origin: 'null' }, 403],
    ['https of the same host', { origin: 'https://127.0.0.1:7580' }, 403],
    ['a script of another site without an origin', { fetchSite: 'cross-site' }, 403],
    ['a page on another port', { fetchSite: 'same-site' }, 403],
    ['its own page', { fetchSite: 'same-origin' }, 200],
    ['a link followed from elsewhere', { fetchSite: 'cross-site', visit: true }, 200],
    ['a write', { method: 'POST' }, 405],
    ['a preflight', { method: 'OPTIONS' }, 405],
  ])('%s', (_what, facts, status) => {
    expect(statusOf(decide(rules, request(facts)))).toBe(status);
  });

  test.each([
    ['nothing', {}, 401],
    ['the wrong token', { queryToken: 's3cres' }, 401],
    ['a longer token', { queryToken: 's3cret1' }, 401],
    ['an empty cookie', { cookie: 'c=' }, 401],
    ['the cookie of another viewer', { cookie: 'd=s3cret' }, 401],
    ['the cookie', { cookie: 'a=b; c=s3cret' }, 200],
    ['a bearer token', { authorization: 'Bearer s3cret' }, 200],
    ['the token in the address', { queryToken: 's3cret' }, 200],
  ])('with a token set: %s', (_what, facts, status) => {
    expect(statusOf(decide(locked, request(facts)))).toBe(status);
  });

  const POST = { method: 'POST', control: true, origin: 'http://127.0.0.1:7580' };
  test.each([
    ['its own page', POST, 200],
    ['its own page, as browsers say it', { ...POST, fetchSite: 'same-origin' }, 200],
    ['no origin', { ...POST, origin: undefined }, 403],
    ['another origin', { ...POST, origin: 'http://evil.example' }, 403],
    ['a sandboxed frame', { ...POST, origin: 'null' }, 403],
    ['another port of this machine', { ...POST, origin: 'http://127.0.0.1:3000' }, 403],
    ['a page on another port', { ...POST, fetchSite: 'same-site' }, 403],
    ['a rebound name', { ...POST, host: 'evil.example:7580', origin: 'http://evil.example:7580' }, 403],
    ['a form of its own address', { ...POST, visit: true }, 403],
    ['no header that only a script sets', { ...POST, control: false }, 405],
    ['another method', { ...POST, method: 'PUT' }, 405],
    ['a preflight', { ...POST, method: 'OPTIONS' }, 405],
  ])('a change of a run from %s', (_what, facts, status) => {
    for (const either of [rules, locked]) {
      const without = status === 200 ? 401 : status;
      expect(statusOf(decide(either, request(facts)))).toBe(without);
      expect(statusOf(decide(either, request({ ...facts, cookie: 'c=s3cres' })))).toBe(without);
      expect(statusOf(decide(either, request({ ...facts, cookie: 'c=s3cret' })))).toBe(status);
    }
  });

  test('the token does not open the door for another host', () => {
    expect(statusOf(decide(locked, request({ host: 'evil.example:7580', queryToken: 's3cret' })))).toBe(403);
  });

  test('only a token in the address sets the cookie', () => {
    expect(decide(locked, request({ queryToken: 's3cret' }))).toEqual({ allow: true, setCookie: true });
    expect(decide(locked, request({ cookie: 'c=s3cret' }))).toEqual({ allow: true, setCookie: false });
  });

  test('a wildcard address answers to the names of its interfaces, a named one only to itself', () => {
    expect(hostsFor('0.0.0.0', 1, ['10.0.0.7', 'fe80::1'])).toEqual(
      new Set(['0.0.0.0:1', '127.0.0.1:1', '[::1]:1', 'localhost:1', '10.0.0.7:1', '[fe80::1]:1']),
    );
    expect(hostsFor('10.0.0.7', 1, ['10.0.0.8'])).toEqual(new Set(['10.0.0.7:1']));
    expect(['127.0.0.1', '127.9.9.9', '::1', 'localhost'].every(isLoopback)).toBe(true);
    expect(['0.0.0.0', '10.0.0.1', '127.0.0.1.evil.example'].some(isLoopback)).toBe(false);
  });
});
