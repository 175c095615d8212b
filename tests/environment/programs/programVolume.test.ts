// A program is unpacked once per engine, whole or not at all, and containers cannot change it.
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { currentOwner } from '../../../src/environment/owner.ts';
import { removeProgramVolume } from '../../../src/environment/places/leftovers.ts';
import type { Program } from '../../../src/environment/programs/program.ts';
import {
  createProgramVolumes,
  listProgramVolumes,
  volumeName,
} from '../../../src/environment/programs/programVolume.ts';
import { packageAt, packed } from '../../support/agents/packages.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE, repositoryImage, testDocker } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();

describe.skipIf(!available)('a program in a volume', () => {
  const bench = testDocker();
  const dir = mkdtempSync(join(tmpdir(), 'programs-'));
  const owner = currentOwner('programs', 'test');
  const names: string[] = [];
  afterEach(() => bench.stop());
  afterAll(async () => {
    for (const { volume, program } of await listProgramVolumes(docker))
      if (names.includes(program)) await removeProgramVolume(docker, volume);
  });

  /** Its content is new each time, so that no volume of an earlier run of the tests serves. */
  async function program(): Promise<Program> {
    const mark = randomBytes(8).toString('hex');
    const name = `demo-${mark}@1.0.0`;
    names.push(name);
    const one = await packageAt(join(dir, `${mark}.tgz`), [
      { name: 'package/bin/hello', content: `#!/bin/sh\necho hello ${mark}\n`, mode: 0o755 },
      ...Array.from({ length: 50 }, (_, n) => ({ name: `package/lib/${n}`, content: 'x'.repeat(50_000) })),
    ]);
    return { name, architecture: 'amd64', variants: [{ libc: null, packages: [one] }] };
  }
  const image = async () => {
    const { Id, Architecture } = await docker.getImage(BASE_IMAGE).inspect();
    return { id: Id, architecture: Architecture };
  };

  test('containers see it read-only, and it is no part of the patch', async () => {
    const env = await bench.start({ image: await repositoryImage(), factory: { program: await program() } });
    const said = await env.execute(
      '/opt/swebatch-program/demo/bin/hello; touch /opt/swebatch-program/demo/bin/hello',
    );
    expect(said.output).toMatch(/^hello [0-9a-f]{16}\ntouch: .*Read-only file system/);
    expect(
      (await env.execute('rm -rf /opt/swebatch-program; ls /opt/swebatch-program/demo/lib | wc -l')).output,
    ).toMatch(/50\n$/);
    expect((await env.capturePatch()).state).toBe('empty');
  });

  test('several that want it at once get one that is whole', async () => {
    const wanted = await program();
    const of = await image();
    // Each with a memory of its own, as processes have.
    const volumes = await Promise.all(
      Array.from({ length: 4 }, () => createProgramVolumes(docker).ensure(wanted, of, owner)),
    );
    expect(new Set(volumes).size).toBe(1);
    const env = await bench.start({ image: await repositoryImage(), factory: { program: wanted } });
    expect((await env.execute('cat /opt/swebatch-program/demo/lib/* | wc -c')).output.trim()).toBe('2500000');
    const left = await docker.listContainers({ all: true, filters: { name: [`${volumes[0]}-lock`] } });
    expect(left).toEqual([]);
  });

  test('what a dead process began is done again from the beginning', async () => {
    const wanted = await program();
    const volume = volumeName(wanted, wanted.variants[0]!);
    const { id: Image } = await image();
    await docker.createVolume({ Name: volume, Labels: { 'swebatch.program': wanted.name } });
    const dead = { 'swebatch.pid': '999999999', 'swebatch.pid_start': '1', 'swebatch.boot_id': owner.bootId };
    await docker.createContainer({
      name: `${volume}-lock`,
      Image,
      Entrypoint: ['none'],
      Cmd: [],
      Labels: { ...dead, 'swebatch.host': owner.host },
      HostConfig: { NetworkMode: 'none', Binds: [`${volume}:/opt/swebatch-program`] },
    });
    const env = await bench.start({ image: await repositoryImage(), factory: { program: wanted } });
    expect((await env.execute('/opt/swebatch-program/demo/bin/hello')).output).toMatch(/^hello/);
  });

  test('a package that is not the one that was added is never used, and nothing is left locked', async () => {
    const wanted = await program();
    const [variant] = wanted.variants;
    const damaged: Program = {
      ...wanted,
      variants: [
        { libc: null, packages: [{ ...variant!.packages[0]!, integrity: `sha512-${'A'.repeat(86)}==` }] },
      ],
    };
    const start = () =>
      repositoryImage().then((of) => bench.start({ image: of, factory: { program: damaged } }));
    const refused = {
      code: 'start_failed',
      message: expect.stringMatching(/is not the package that was added/),
    };
    await expect(start()).rejects.toMatchObject(refused);
    await expect(start()).rejects.toMatchObject(refused);
    const name = `${volumeName(damaged, damaged.variants[0]!)}-lock`;
    expect(await docker.listContainers({ all: true, filters: { name: [name] } })).toEqual([]);
  });

  test.each([
    ['musl', ['lib/ld-musl-x86_64.so.1']],
    ['musl', ['lib/ld-musl-x86_64.so.1', 'lib64/ld-linux-x86-64.so.2', 'etc/alpine-release']],
    ['glibc', ['lib/ld-musl-x86_64.so.1', 'lib64/ld-linux-x86-64.so.2']],
  ])('the variant for %s is taken where the image holds %o', async (libc, files) => {
    const tag = `swebatch-envtest/libc:${randomBytes(4).toString('hex')}`;
    const image = await packed(files.map((name) => ({ name, content: 'x' })));
    const [repo, version] = tag.split(':') as [string, string];
    const imported = await docker.importImage(Readable.from([image]) as never, { repo, tag: version });
    await buffer(imported as unknown as AsyncIterable<Buffer>);
    try {
      const { Id: id } = await docker.getImage(tag).inspect();
      const [{ packages }] = (await program()).variants as [Program['variants'][number]];
      const { name } = await program();
      const both: Program = {
        ...{ name, architecture: 'amd64' },
        variants: [
          { libc: 'glibc', packages },
          { libc: 'musl', packages },
        ],
      };
      const volume = await createProgramVolumes(docker).ensure(both, { id, architecture: 'amd64' }, owner);
      expect(volume).toContain(`-${libc}-`);
    } finally {
      await docker.getImage(tag).remove({ force: true });
    }
  });

  test('an image with another C library says what is missing', async () => {
    const wanted = await program();
    const musl: Program = { ...wanted, variants: [{ libc: 'musl', packages: wanted.variants[0]!.packages }] };
    await expect(createProgramVolumes(docker).ensure(musl, await image(), owner)).rejects.toMatchObject({
      message: expect.stringMatching(/is there for musl, and the image has glibc/),
    });
  });
});
