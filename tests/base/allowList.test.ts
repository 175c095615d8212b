// Lists of hosts as Harbor writes them, the spellings of a host that mean one thing, and the addresses that no name may lead to.
import { describe, expect, test } from 'vitest';
import {
  allowListProblems,
  isPublicAddress,
  type Network,
  reaches,
  reachOf,
  readTarget,
} from '../../src/base/allowList.ts';

const NOWHERE = () => [];
const verdict = (network: Network, target: string, own: readonly string[] = []) => {
  const read = readTarget(target);
  if (!read) return 'unread';
  const judged = reachOf(network, own, NOWHERE).judge(read);
  return 'refused' in judged ? 'refused' : judged.portNamed ? 'port named' : 'allowed';
};

describe('a host and its port', () => {
  test.each([
    ['example.com:443', { host: 'example.com', port: 443 }],
    ['EXAMPLE.com.:80', { host: 'example.com', port: 80 }],
    ['[2001:DB8:0::1]:443', { host: '2001:db8::1', port: 443 }],
    // As resolvers read them, all of these are 127.0.0.1.
    ['127.1:80', { host: '127.0.0.1', port: 80 }],
    ['0x7f000001:80', { host: '127.0.0.1', port: 80 }],
    ['2130706433:80', { host: '127.0.0.1', port: 80 }],
    ['0177.0.0.1:80', { host: '127.0.0.1', port: 80 }],
    ['[::ffff:127.0.0.1]:80', { host: '::ffff:7f00:1', port: 80 }],
  ])('%s is read', (text, target) => {
    expect(readTarget(text)).toEqual(target);
  });

  test.each([
    ...['example.com', 'example.com:', ':443', 'example.com:0', 'example.com:65536', 'example.com:443:80'],
    ...['user@example.com:443', 'example.com:443/', 'example.com/x:443', 'ex%61mple.com:443', 'a b.com:443'],
    ...['example.com\u0000.evil.com:443', '::1:443', '[::1]', '[::1%25eth0]:443', '*.example.com:443'],
    ...['a..com:443', '-a.com:443', `${'a.'.repeat(130)}com:443`, '例え.jp:443', 'http://example.com:443'],
  ])('%s is none', (text) => {
    expect(readTarget(text)).toBeUndefined();
  });
});

describe('a list of hosts', () => {
  const list = { allow: ['pypi.org', '*.example.com', '93.184.216.34', '2600:1406::/32'] };

  test.each([
    ['pypi.org:443', 'allowed'],
    ['PyPI.org.:80', 'allowed'],
    ['files.pypi.org:443', 'refused'],
    ['pypi.org.evil.com:443', 'refused'],
    ['evilpypi.org:443', 'refused'],
    ['a.example.com:443', 'allowed'],
    ['a.b.example.com:443', 'allowed'],
    ['example.com:443', 'refused'],
    ['aexample.com:443', 'refused'],
    ['93.184.216.34:443', 'allowed'],
    ['93.184.216.35:443', 'refused'],
    ['[2600:1406::9]:443', 'allowed'],
    ['[2600:1407::9]:443', 'refused'],
    ['pypi.org:22', 'refused'],
    ['pypi.org:8443', 'refused'],
  ])('%s is %s', (target, expected) => {
    expect(verdict(list, target)).toBe(expected);
  });

  test('an entry with a port opens that port alone', () => {
    const own = ['git.example.com:22', '[2600:1406::1]:8443'];
    expect(verdict('none', 'git.example.com:22', own)).toBe('port named');
    expect(verdict('none', 'git.example.com:443', own)).toBe('refused');
    expect(verdict('none', '[2600:1406::1]:8443', own)).toBe('port named');
  });

  test('an empty list opens nothing, and the open network every host on the ports of the web', () => {
    expect(verdict({ allow: [] }, 'pypi.org:443')).toBe('refused');
    expect(verdict('none', 'pypi.org:443')).toBe('refused');
    expect(verdict('public', 'pypi.org:443')).toBe('allowed');
    expect(verdict('public', 'pypi.org:25')).toBe('refused');
  });

  test.each([
    ...['', '*', '*.', 'a*.com', '*.10.0.0.1', 'https://pypi.org', 'pypi.org/simple', 'a_b.com', '*.*.com'],
    ...['fe80::1%eth0', 'fe80::1%eth0/64', '10.0.0.0/33', '10.0.0.0/x', 'pypi.org:443', '[::1]:80', 'a b'],
  ])('"%s" is no entry of a task', (entry) => {
    expect(allowListProblems([entry])).toHaveLength(1);
  });

  test('entries that the format has, and a port where a person may name one', () => {
    const entries = [
      'pypi.org',
      '*.Example.com',
      '192.0.2.1',
      '192.0.2.0/24',
      '2001:db8::1',
      '2001:db8::/32',
    ];
    expect(allowListProblems(entries)).toEqual([]);
    expect(allowListProblems(['pypi.org:443', '[::1]:80', '*.a.com:8080'], { withPorts: true })).toEqual([]);
    expect(allowListProblems(['pypi.org:0', 'pypi.org:70000'], { withPorts: true })).toHaveLength(2);
  });

  test('whether the address of a server can be reached', () => {
    expect(reaches(list, 'https://pypi.org/mcp')).toBe(true);
    expect(reaches(list, 'http://pypi.org:8000/mcp')).toBe(false);
    expect(reaches('none', 'https://pypi.org/mcp')).toBe(false);
    expect(reaches('public', 'http://anything:8000/')).toBe(true);
  });
});

describe('addresses', () => {
  test.each([
    ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.0.1'],
    ...[
      '169.254.169.254',
      '100.64.0.1',
      '192.0.0.8',
      '192.0.2.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
    ],
    ...['224.0.0.1', '240.0.0.1', '255.255.255.255', '192.88.99.1'],
    ...['::', '::1', 'fe80::1', 'fc00::1', 'fd12::1', 'ff02::1', '::ffff:127.0.0.1', '::ffff:8.8.8.8'],
    ...['64:ff9b::7f00:1', '64:ff9b:1::1', '2002:7f00:1::', '2001::1', '2001:db8::1', '::7f00:1', '100::1'],
    ...['fe80::1%eth0', '2606:4700::1%eth0', 'pypi.org'],
  ])('%s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(['8.8.8.8', '93.184.216.34', '172.32.0.1', '100.128.0.1', '2606:4700::1', '2a00:1450::1'])(
    '%s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  test('one that is not public is opened by the person who names it alone, and a name opens none', () => {
    const byTask = reachOf({ allow: ['10.0.0.5', 'db.internal', '10.0.0.0/8'] }, [], NOWHERE);
    expect(byTask.mayConnect('10.0.0.5', 443)).toBe(false);
    const byName = reachOf('none', ['db.internal', '*.internal'], NOWHERE);
    expect(byName.mayConnect('10.0.0.5', 443)).toBe(false);
    const byAddress = reachOf('none', ['10.0.0.5', '10.1.0.0/16', '127.0.0.1:8080'], NOWHERE);
    expect(byAddress.mayConnect('10.0.0.5', 443)).toBe(true);
    expect(byAddress.mayConnect('10.1.9.9', 80)).toBe(true);
    expect(byAddress.mayConnect('10.2.0.1', 80)).toBe(false);
    expect(byAddress.mayConnect('127.0.0.1', 8080)).toBe(true);
    expect(byAddress.mayConnect('127.0.0.1', 80)).toBe(false);
  });

  test('a public address of this machine is not reached from within either', () => {
    const reach = reachOf('public', [], () => ['93.184.216.34']);
    expect(reach.mayConnect('93.184.216.34', 443)).toBe(false);
    expect(reach.mayConnect('93.184.216.35', 443)).toBe(true);
  });
});
