// What the setup scripts decide, without touching the machine, and the scripts themselves where they change nothing.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT as REPO_ROOT } from '../../src/base/files/packageFile.ts';

interface Engine {
  debianLike(osRelease: string): boolean;
  advice(machine: { platform: string; root: boolean; debian: boolean; text: string }): string;
  flagsFor(log: string): string[];
  wasCleaningUp(log: string): boolean;
  complaints(log: string): string;
}
interface Packages {
  missingPackages(root: string): string[];
}
interface Tools {
  missingTools(folders: string[]): { packages: string[] }[];
}
interface Lock {
  unlockedPackages(lock: unknown): { name: string; optional: boolean }[];
  platformOf(name: string): Record<string, string[]>;
}
interface Say {
  runQuietly(program: string, args: string[], what: string, options: { log: string }): void;
}
interface RunId {
  demoRunIds(runs: { run: string; status: string }[]): string[];
}
// Plain JavaScript that the old Node of a fresh machine runs; hence no types to import.
const load = async (path: string): Promise<unknown> => import(join(REPO_ROOT, 'scripts', path));
const { debianLike, advice, flagsFor, wasCleaningUp, complaints } = (await load(
  'setup/engine.mjs',
)) as Engine;
const { missingPackages } = (await load('setup/packages.mjs')) as Packages;
const { missingTools } = (await load('setup/testTools.mjs')) as Tools;
const { unlockedPackages, platformOf } = (await load('setup/lock.mjs')) as Lock;
const { runQuietly } = (await load('setup/say.mjs')) as Say;
const { demoRunIds } = (await load('demo/runId.mjs')) as RunId;

describe('what is installed', () => {
  const log = join(mkdtempSync(join(tmpdir(), 'swebatch-setup-')), 'setup.log');
  const shell = (script: string) => runQuietly('sh', ['-c', script], 'apt-get install x', { log });
  test('keeps what it says in a log', () => {
    shell('echo Unpacking x; echo Warning >&2');
    expect(readFileSync(log, 'utf8')).toBe('Unpacking x\nWarning\n');
  });
  test('shows the end of it when it fails', () => {
    expect(() => shell('seq 1 500; echo no such package >&2; exit 3')).toThrow(
      /^apt-get install x ended with 3\. The end of .*setup\.log:\n(?!1\n)[\s\S]*500\nno such package$/,
    );
    expect(() => runQuietly('no-such-program', [], 'it', { log })).toThrow(/^it: .*ENOENT/);
  });
});

describe('setup', () => {
  test.each([
    ['ID=debian\nVERSION_ID="12"', true],
    ['NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian', true],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"', true],
    ['ID=fedora\n', false],
    ['ID="opensuse-leap"\nID_LIKE="suse opensuse"', false],
    ['VERSION="like debian"\nID=arch', false],
  ])('knows where apt is: %j', (text, expected) => {
    expect(debianLike(text)).toBe(expected);
  });

  test('tells each kind of machine what to do', () => {
    const machine = { platform: 'linux', root: false, debian: true, text: '' };
    expect(advice({ ...machine, platform: 'darwin' })).toContain('Docker Desktop');
    expect(advice(machine)).toContain('sudo apt-get install docker.io');
    expect(advice({ ...machine, text: 'permission denied while trying to connect' })).toContain(
      'usermod -aG docker',
    );
    expect(advice({ ...machine, debian: false })).toContain('systemctl start docker');
  });

  test('starts an engine once more with what its log asks for', () => {
    expect(flagsFor('failed to start daemon: driver not supported: overlay2')).toEqual([
      '--storage-driver=vfs',
    ]);
    expect(flagsFor('iptables failed: iptables -t nat -N DOCKER')).toEqual([
      '--iptables=false',
      '--ip6tables=false',
    ]);
    expect(flagsFor('address already in use')).toEqual([]);
    expect(wasCleaningUp('failed to start containerd: timeout waiting for containerd to start')).toBe(true);
    expect(wasCleaningUp('address already in use')).toBe(false);
  });

  test('quotes what an engine says is wrong, not what it says last', () => {
    const log =
      'level=info msg=a\nfailed to start daemon: no cgroups\nlevel=warning msg="grpc: retry"\nlevel=info msg=bye\n';
    expect(complaints(log)).toBe('failed to start daemon: no cgroups');
    expect(complaints('one\ntwo\n')).toBe('one\ntwo');
  });

  test('finds packages that are absent or of another version', () => {
    const root = mkdtempSync(join(tmpdir(), 'swebatch-packages-'));
    try {
      const write = (path: string, value: unknown) => {
        mkdirSync(join(root, path, '..'), { recursive: true });
        writeFileSync(join(root, path), JSON.stringify(value));
      };
      write('package.json', {
        dependencies: { a: '1.0.0', '@s/b': '2.0.0' },
        devDependencies: { c: '3.0.0' },
      });
      write('node_modules/a/package.json', { version: '1.0.0' });
      write('node_modules/@s/b/package.json', { version: '2.0.1' });
      expect(missingPackages(root)).toEqual(['@s/b', 'c']);
      write('node_modules/@s/b/package.json', { version: '2.0.0' });
      write('node_modules/c/package.json', { version: '3.0.0' });
      expect(missingPackages(root)).toEqual([]);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  test('knows which tools of the tests are absent, by any of their names', () => {
    const root = mkdtempSync(join(tmpdir(), 'swebatch-tools-'));
    try {
      for (const name of ['google-chrome', 'docker-registry', 'mkfs.ext4', 'git', 'pip3'])
        writeFileSync(join(root, name), '');
      expect(missingTools([root]).flatMap(({ packages }) => packages)).toEqual([
        ...['shellcheck', 'gcc', 'libc6-dev'],
      ]);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  test('refuses an option it does not know, with code 2 and the list', () => {
    const done = spawnSync(process.execPath, [join(REPO_ROOT, 'scripts/setup.mjs'), '--fast'], {
      encoding: 'utf8',
    });
    expect(done.status).toBe(2);
    expect(done.stderr).toContain('unknown option --fast');
    expect(done.stderr).toContain('--docker-only');
  });
});

describe('package-lock.json', () => {
  test('locks every package that it names, so that npm ci takes it (else: node scripts/completeLock.mjs)', () => {
    const lock: unknown = JSON.parse(readFileSync(join(REPO_ROOT, 'package-lock.json'), 'utf8'));
    expect(unlockedPackages(lock)).toEqual([]);
  });

  test('a package that is named and not locked is found, also where another version lies further out', () => {
    const packages = {
      '': { dependencies: { a: '1' }, devDependencies: { b: '1' } },
      'node_modules/a': { dependencies: { c: '2' }, optionalDependencies: { 'x-linux-x64-musl': '1' } },
      'node_modules/a/node_modules/c': { dependencies: { c: '2', d: '1' } },
    };
    expect(unlockedPackages({ packages }).map(({ name, optional }) => [name, optional])).toEqual([
      ['b', false],
      ['x-linux-x64-musl', true],
      ['d', false],
    ]);
  });

  test('a binding says in its name where it belongs', () => {
    expect(platformOf('@biomejs/cli-darwin-arm64')).toEqual({ os: ['darwin'], cpu: ['arm64'] });
    expect(platformOf('x-linux-arm-musleabihf')).toEqual({ os: ['linux'], cpu: ['arm'], libc: ['musl'] });
    expect(() => platformOf('left-pad')).toThrow('for which platform');
  });
});

describe('demo', () => {
  test('numbers its runs, and continues one that was interrupted before it begins another', () => {
    const runs = (...names: string[]) => names.map((run) => ({ run, status: 'complete' }));
    expect(demoRunIds([])).toEqual(['demo-1']);
    expect(demoRunIds(runs('demo-2', 'demo-10', 'demo-1', 'nightly'))).toEqual(['demo-11']);
    expect(demoRunIds([...runs('demo-1'), { run: 'demo-2', status: 'interrupted' }])).toEqual([
      'demo-2',
      'demo-3',
    ]);
    expect(demoRunIds([{ run: 'nightly', status: 'interrupted' }])).toEqual(['demo-1']);
  });
});
