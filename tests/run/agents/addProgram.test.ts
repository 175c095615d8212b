// Any program can be an agent: a package with all that it depends on, a folder or a tar file becomes one package that is hashed whole.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import tar from 'tar-stream';
import { afterEach, describe, expect, test } from 'vitest';
import { programTar } from '../../../src/environment/programs/packageTar.ts';
import { agentCacheDir, cachedProgram } from '../../../src/run/agents/agentCache.ts';
import { addAgent, listAgents, removeAgent, verifyAgents } from '../../../src/run/agents/installedAgents.ts';
import { consoleScripts, librariesIn } from '../../../src/run/agents/pypiProgram.ts';
import { type FakeRegistry, fakeRegistry, type PackedFile, packed } from '../../support/agents/packages.ts';

const nodeBytes = await packed([{ name: 'package/bin/node', content: 'node', mode: 0o755 }]);
const fresh = () => mkdtempSync(join(tmpdir(), 'program-'));

function folderOf(files: Readonly<Record<string, string>>): string {
  const root = fresh();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    if (path.startsWith('bin/')) chmodSync(join(root, path), 0o755);
  }
  return root;
}

const callerIn = (dir: string, more: Record<string, string> = {}) => {
  const said: string[] = [];
  const { PATH } = process.env;
  const env = { PATH, HOME: dir, XDG_CACHE_HOME: dir, DOCKER_HOST: 'tcp://127.0.0.1:1', ...more };
  return { said, caller: { env, cwd: dir, tell: ({ text }: { text: string }) => void said.push(text) } };
};

/** What a container gets of it: paths with their modes, and contents. */
async function unpackedFrom(file: string) {
  const found: Record<string, { mode: number; content: string }> = {};
  const extract = tar.extract();
  extract.end(gunzipSync(readFileSync(file)));
  for await (const entry of extract)
    found[entry.header.name] = { mode: entry.header.mode!, content: (await buffer(entry)).toString() };
  return found;
}

test.each([
  'npm:left-pad',
  'npm:left-pad@latest',
  'npm:--registry=http://evil@1.0.0',
  'npm:a;reboot@1.0.0',
  'npm:../../etc@1.0.0',
  'pypi:mini-swe-agent>=2',
  'pypi:-r/etc/passwd==1',
  'pypi:x==1 --index-url=http://evil',
])('%s names no package with one version', async (text) => {
  const { caller } = callerIn(fresh());
  await expect(addAgent(text, caller)).rejects.toThrow(/names no package with one version/);
});

test.each(['../x', 'a b', '$(reboot)', '-rf', 'A', '', 'codex', 'default'])(
  '%j is no name of a program',
  async (name) => {
    const { caller } = callerIn(fresh());
    const adding = addAgent(folderOf({ 'bin/tool': '#!/bin/sh\n' }), caller, name);
    await expect(adding).rejects.toThrow(/cannot be the name|that swebatch knows/);
    expect(existsSync(agentCacheDir(caller.env))).toBe(false);
  },
);

describe('a folder', () => {
  test('is packed to the same bytes whenever and with whatever dates and rights', async () => {
    const one = folderOf({ 'bin/tool': '#!/bin/sh\necho 1\n', 'lib/x.txt': 'x' });
    const two = folderOf({ 'lib/x.txt': 'x', 'bin/tool': '#!/bin/sh\necho 1\n' });
    utimesSync(join(two, 'lib/x.txt'), 1, 1);
    chmodSync(join(two, 'lib/x.txt'), 0o600);
    const packedOf = async (source: string) => {
      const { version, variants } = await addAgent(source, callerIn(fresh()).caller, 't');
      return [version, variants[0]!.packages[0]!.integrity];
    };
    const known = await packedOf(one);
    expect(await packedOf(two)).toEqual(known);
    writeFileSync(join(two, 'lib/x.txt'), 'y');
    const [version, integrity] = await packedOf(two);
    expect(version).not.toBe(known[0]);
    expect(integrity).not.toBe(known[1]);
  });

  test('becomes a program whose version is its content, and is listed, verified and removed', async () => {
    const dir = fresh();
    const { caller } = callerIn(dir);
    const source = folderOf({ 'bin/tool': '#!/bin/sh\necho 1\n', 'lib/x.txt': 'x' });
    symlinkSync('../lib/x.txt', join(source, 'bin', 'same'));
    const added = await addAgent(source, caller, 'mytool');
    expect(added).toMatchObject({ agent: 'mytool', program: { commands: ['same', 'tool'], contains: [] } });
    expect(added.version).toMatch(/^0\.0\.0-[0-9a-f]{16}$/);
    expect((await addAgent(source, caller, 'mytool')).version).toBe(added.version);
    const program = cachedProgram(agentCacheDir(caller.env), added);
    const held = await unpackedFrom(program.variants[0]!.packages[0]!.file);
    expect(Object.keys(held)).toEqual(['package/bin/same', 'package/bin/tool', 'package/lib/x.txt']);
    expect(held['package/bin/same']!.content).toBe('x');
    // What containers get of it is what every other package goes through.
    await expect(buffer(programTar(program.variants[0]!.packages) as never)).resolves.toBeInstanceOf(Buffer);
    expect((await verifyAgents('mytool', caller))[0]!.problems).toEqual([]);
    await removeAgent('mytool', caller);
    expect(listAgents(caller)).toEqual([]);
  });

  test('takes what killed processes of this machine left of theirs out of the cache, and nothing else', async () => {
    const { caller } = callerIn(fresh());
    const cache = agentCacheDir(caller.env);
    const dead = spawnSync('true').pid;
    const left = `.adding-${hostname()}-${dead}-abcdef`;
    const others = [`.adding-${hostname()}-${process.pid}-abcdef`, `.adding-${hostname()}-2-${dead}-abcdef`];
    for (const name of [left, ...others]) mkdirSync(join(cache, name, 'program'), { recursive: true });
    await addAgent(folderOf({ 'bin/tool': '#!/bin/sh\n' }), caller, 't');
    expect(
      readdirSync(cache)
        .filter((name) => name.startsWith('.adding'))
        .sort(),
    ).toEqual(others.sort());
  });

  test('gets a command for each executable file at its top where it has no bin', async () => {
    const { caller } = callerIn(fresh());
    const source = folderOf({ tool: '#!/bin/sh\n', 'data.txt': '' });
    chmodSync(join(source, 'tool'), 0o755);
    expect((await addAgent(source, caller, 't')).program!.commands).toEqual(['tool']);
    await expect(addAgent(folderOf({ 'data.txt': '' }), caller, 't')).rejects.toThrow(/has no command/);
  });

  test.each([
    ['/etc/passwd', /"lib\/x" is a link that leads out of it/],
    ['../../outside', /leads (out of it|to nothing)/],
    ['nowhere', /leads to nothing/],
    ['..', /link in a circle/],
  ])('with a link to %s is refused, and nothing is kept', async (target, message) => {
    const dir = fresh();
    const { caller } = callerIn(dir);
    const source = folderOf({ 'bin/tool': '', 'lib/y': '' });
    symlinkSync(target, join(source, 'lib', 'x'));
    await expect(addAgent(source, caller, 't')).rejects.toThrow(message);
    expect(listAgents(caller)).toEqual([]);
    expect(readdirSync(agentCacheDir(caller.env)).filter((name) => name.startsWith('.adding'))).toEqual([]);
  });

  test('with a command that is more than a word is refused', async () => {
    const { caller } = callerIn(fresh());
    const source = folderOf({ 'bin/$(reboot)': '' });
    await expect(addAgent(source, caller, 't')).rejects.toThrow(/which no shell would find/);
  });
});

describe('a tar file', () => {
  const added = async (files: readonly PackedFile[], name = 'tool') => {
    const dir = fresh();
    writeFileSync(join(dir, 'tool.tgz'), await packed(files));
    const { caller } = callerIn(dir);
    return { dir, caller, adding: addAgent('tool.tgz', caller, name) };
  };
  const bin: PackedFile = { name: 'tool-1.0/bin/tool', content: '#!/bin/sh\n', mode: 0o755 };

  test('is a program; the folder at its top is left out', async () => {
    const link: PackedFile = { name: 'tool-1.0/bin/other', type: 'symlink', linkname: 'tool' };
    const { adding } = await added([bin, link]);
    expect((await adding).program!.commands).toEqual(['other', 'tool']);
  });

  test.each<[string, readonly PackedFile[], RegExp]>([
    ['a path that goes up', [bin, { name: '../evil', content: 'x' }], /leads out of it/],
    ['an absolute path', [bin, { name: '/tmp/evil', content: 'x' }], /leads out of it/],
    [
      'a link out',
      [bin, { name: 'tool-1.0/x', type: 'symlink', linkname: '/etc/passwd' }],
      /leads out of it/,
    ],
    [
      'a hard link out',
      [bin, { name: 'tool-1.0/x', type: 'link', linkname: '../../etc/passwd' }],
      /leads out of it/,
    ],
    [
      'a link through a link',
      [
        bin,
        { name: 'tool-1.0/out', type: 'symlink', linkname: '/tmp' },
        { name: 'tool-1.0/out/swebatch-evil', type: 'symlink', linkname: '/etc/passwd' },
      ],
      /leads outside/,
    ],
    ['a pipe', [bin, { name: 'tool-1.0/p', type: 'fifo' }], /which is a fifo/],
  ])('with %s is refused', async (_, files, message) => {
    const { adding, caller } = await added(files);
    await expect(adding).rejects.toThrow(message);
    expect(listAgents(caller)).toEqual([]);
    expect(readdirSync(tmpdir())).not.toContain('swebatch-evil');
  });
});

describe('a package of npm', () => {
  let registry: FakeRegistry | undefined;
  afterEach(() => registry?.close());
  const own = (bin: unknown, more: readonly PackedFile[] = []) =>
    packed([
      {
        name: 'package/package.json',
        content: JSON.stringify({ name: 'tool', version: '1.2.3', license: 'MIT', bin }),
      },
      { name: 'package/cli.js', content: '#!/usr/bin/env node\n' },
      { name: 'package/run.sh', content: '#!/bin/sh\n', mode: 0o755 },
      ...more,
    ]);
  const adding = async (bytes: Buffer) => {
    registry = await fakeRegistry([
      { name: 'tool', version: '1.2.3', bytes, licence: 'MIT' },
      { name: `node-linux-${process.arch}`, version: '22.23.3', bytes: nodeBytes, licence: 'MIT' },
    ]);
    const { caller, said } = callerIn(fresh(), {
      ...{ npm_config_registry: registry.url, npm_config_fetch_retries: '0' },
    });
    return { caller, said, registry };
  };

  test('brings a Node beside it; its commands are scripts that start it, and what is in it is on record', async () => {
    const { caller, said, registry: served } = await adding(await own({ tool: './cli.js', other: 'run.sh' }));
    const added = await addAgent('npm:tool@1.2.3', caller);
    expect(added).toMatchObject({ agent: 'tool', version: '1.2.3', variants: [{ libc: 'glibc' }] });
    expect(added.program).toMatchObject({
      ...{ source: 'npm:tool@1.2.3', commands: ['other', 'tool'] },
      contains: [{ name: 'tool', version: '1.2.3', integrity: expect.stringMatching(/^sha512-/) }],
    });
    const [program] = cachedProgram(agentCacheDir(caller.env), added).variants;
    expect(program!.packages.map(({ folder }) => folder)).toEqual(['program', 'node']);
    const held = await unpackedFrom(program!.packages[0]!.file);
    const at = '/opt/swebatch-program';
    expect(held['package/bin/tool']).toEqual({
      mode: 0o755,
      content: `#!/bin/sh\nexec '${at}/node/bin/node' '${at}/program/node_modules/tool/cli.js' "$@"\n`,
    });
    expect(held['package/bin/other']!.content).toBe(
      `#!/bin/sh\nexec '${at}/program/node_modules/tool/run.sh' "$@"\n`,
    );
    const asked = served.fetched.length;
    expect(await addAgent('npm:tool@1.2.3', caller)).toEqual(added);
    expect(served.fetched).toHaveLength(asked);
    expect(said.at(-1)).toMatch(/tool@1\.2\.3 is here already/);
  });

  test.each([
    [{ tool: '../../../../../../etc/passwd' }, /leads out of it|is not there/],
    [{ 'a;reboot': 'cli.js' }, /which no shell would find|has no command/],
    [{ tool: 'absent.js' }, /is not there/],
    [undefined, /has no command/],
  ])('that names %j as its commands is refused', async (bin, message) => {
    const { caller } = await adding(await own(bin));
    await expect(addAgent('npm:tool@1.2.3', caller)).rejects.toThrow(message);
    expect(listAgents(caller)).toEqual([]);
  });

  test('that names no command, as those of one platform, has the programs of its bin', async () => {
    const files: PackedFile[] = [
      { name: 'package/bin/tool', content: '#!/bin/sh\n', mode: 0o755 },
      { name: 'package/bin/notes.txt', content: 'no program' },
    ];
    const { caller } = await adding(await own(undefined, files));
    const { program } = await addAgent('npm:tool@1.2.3', caller);
    expect(program).toMatchObject({ commands: ['tool'] });
  });

  test('that the registry does not have is told', async () => {
    const { caller } = await adding(await own({ tool: 'cli.js' }));
    await expect(addAgent('npm:tool@9.9.9', caller)).rejects.toThrow('the registry has no tool@9.9.9');
  });
});

test('a registry that refuses is told at once, with the cause', async () => {
  const { caller } = callerIn(fresh(), { npm_config_registry: 'http://127.0.0.1:9/' });
  const began = performance.now();
  await expect(addAgent('codex@0.169.0', caller)).rejects.toThrow(/npm could not look up .*ECONNREFUSED/);
  expect(performance.now() - began).toBeLessThan(20_000);
});

test('the commands of a Python package are its console scripts', () => {
  const text =
    '[gui_scripts]\nw = a:b\n\n[console_scripts]\nmini = minisweagent.run.mini:app\nx-y = a.b:c.d [extra]\n$(x) = a:b\nbad = a;b:c\n\n[other]\nz = a:b\n';
  expect(consoleScripts(text)).toEqual([
    { name: 'mini', module: 'minisweagent.run.mini', call: 'app' },
    { name: 'x-y', module: 'a.b', call: 'c.d' },
  ]);
});

test('what a loader lists is read as its libraries and itself', () => {
  const listed = `	linux-vdso.so.1 (0x00007fe2e8e1e000)
	libpython3.11.so.1.0 => /opt/py/lib/libpython3.11.so.1.0 (0x00007fe2e8800000)
	libtk8.6.so => not found
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fe2e861e000)
	/lib64/ld-linux-x86-64.so.2 (0x00007fe2e8e20000)
`;
  expect(librariesIn(listed)).toEqual({
    loader: '/lib64/ld-linux-x86-64.so.2',
    paths: ['/opt/py/lib/libpython3.11.so.1.0', '/lib/x86_64-linux-gnu/libc.so.6'],
  });
});
