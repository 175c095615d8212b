// Future history is gone before the first step, and what cannot be sealed is refused [T-48].
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SEALED_REPOSITORY, sealedTag } from '../../../src/environment/docker/seal.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { derivedImage, testDocker } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();

/** A repository at commit "base" whose fix lies in every place where a later commit can hide; ids are written to /ids. */
const LEAKY = `
rm -rf /testbed; mkdir /testbed; cd /testbed; export HOME=/root GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main; git config user.email a@b; git config user.name a
echo one > f; git add f; git commit -qm first; echo base > f; git commit -qam base; base=$(git rev-parse HEAD)
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
mk() { git checkout -q $base; echo "fix $1" > "fix-$1"; git add -A; git commit -qm "fix $1"; echo "$1 $(git rev-parse HEAD)" >> /ids; }
mk branch; git branch future
mk tag; git tag v9
mk annotated; git tag -a -m x v10
mk remote; git update-ref refs/remotes/origin/main HEAD; git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main
mk pull; git update-ref refs/pull/1/head HEAD
mk fetchhead; git rev-parse HEAD > .git/FETCH_HEAD
mk orighead; git rev-parse HEAD > .git/ORIG_HEAD
mk unreachable; git fsck --lost-found >/dev/null
mk worktree; git worktree add -q /other HEAD
mk packed; git branch p; git gc -q; git branch -qD p
git checkout -q main; git reset -q --hard $base
echo stashed > f; git stash -q; echo "stash $(git rev-parse stash@{0})" >> /ids
git remote add origin https://token@example.com/x.git; git config branch.main.remote origin; git config branch.main.merge refs/heads/main
git clone -q --bare /testbed /alternate; cd /alternate; echo "alternate $(git commit-tree -m alt HEAD^{tree})" >> /ids; cd /testbed
echo /alternate/objects > .git/objects/info/alternates
touch .git/objects/pack/$(ls .git/objects/pack | grep -m1 'pack$' | sed 's/pack$/keep/')
git commit-graph write --reachable; git multi-pack-index write
echo staged > staged; git add staged; echo untracked > untracked
echo $base > /base
`;

describe.skipIf(!available)('sealing', () => {
  const bench = testDocker();
  afterEach(() => bench.stop());

  const forget = async (image: string) => {
    const { Id } = await docker.getImage(image).inspect();
    await docker
      .getImage(`${SEALED_REPOSITORY}:${sealedTag(Id, { cwd: '/testbed', user: undefined })}`)
      .remove({ force: true })
      .catch(() => undefined);
    return Id;
  };

  test.each([
    ['a work tree of root under a USER that is not', LEAKY, { User: 'daemon' }],
    ['a work tree that is a VOLUME', LEAKY, { Volumes: { '/testbed': {} } }],
    [
      'a VOLUME of a USER where the start tree would be kept',
      `${LEAKY}chown -R daemon /testbed /var/lib`,
      {
        User: 'daemon',
        Volumes: { '/var/lib': {} },
      },
    ],
  ])('%s is sealed, and its work is captured [T-48]', async (_, script, settings) => {
    const image = await derivedImage(script, undefined, [], settings);
    await forget(image);
    for (const _again of [1, 2]) {
      const env = await bench.start({ image });
      expect(env.info.history).toBe('sealed');
      const git = 'git -c safe.directory=/testbed';
      expect((await env.execute(`${git} log --all -1 --format=%ct`)).output.trim()).toBe('1577836800');
      await env.as('root').execute('echo done > /testbed/answer');
      const { state, patch } = await env.capturePatch();
      expect([state, Buffer.from(patch).includes('+done')]).toEqual(['ok', true]);
    }
  });

  test('every later commit is gone, the work tree and the index are as they were, and the image is made once [T-48]', async () => {
    const image = await derivedImage(LEAKY);
    await forget(image);
    const plain = await bench.start({ image, config: { seal_history: false } });
    expect(plain.info.history).toBe('skipped');
    const facts = 'git status --porcelain; git log --format=%s; git stash list | wc -l';
    expect((await plain.execute('git log --all -1 --format=%ct')).output.trim()).toBe('1704067200');
    const before = (await plain.execute(facts)).output;
    const [base, ids] = (await plain.execute('cat /base; echo; cat /ids')).output.split('\n\n');

    const phases: string[] = [];
    const env = await bench.start({
      image,
      request: { baseCommit: base!.trim(), onPhase: (p) => phases.push(p) },
    });
    expect(env.info.history).toBe('sealed');
    expect(phases).toEqual(['pull', 'seal', 'start', 'verify', 'snapshot']);
    expect((await env.execute('git log --all -1 --format=%ct')).output.trim()).toBe('1577836800');
    const names = ids!.trim().split('\n');
    expect(names.length).toBe(12);
    for (const line of names) {
      const [name, id] = line.split(' ');
      const found = await env.execute(`git cat-file -e ${id} 2>&1; echo "rc $?"`);
      expect(`${name} ${found.output}`).not.toContain('rc 0');
    }
    const clean = await env.execute(
      'git remote; git for-each-ref --format="%(refname)"; git reflog; git fsck --unreachable --no-reflogs 2>&1; ls -d .git/*_HEAD .git/logs .git/lost-found .git/info/refs .git/objects/info/alternates 2>/dev/null; git config --get-regexp "remote|branch"; echo end',
    );
    expect(clean.output).toBe('refs/heads/main\nend\n');
    const after = (await env.execute(facts)).output;
    expect(after).toBe(before.replace(/1\n$/, '0\n'));
    // Git still works for the agent.
    expect((await env.execute('git commit -qm mine && git log --format=%s | head -1')).output).toBe('mine\n');

    const second = await bench.start({ image, request: { baseCommit: base!.trim() } });
    expect([second.info.history, second.info.imageDigest]).toEqual(['sealed', env.info.imageDigest]);
    await second.execute('echo x > x');
    const { patch, state } = await second.capturePatch();
    expect([
      state,
      [
        ...Buffer.from(patch)
          .toString()
          .matchAll(/^diff.*b\/(.*)/gm),
      ].map((m) => m[1]),
    ]).toEqual(['ok', ['x']]);
  });

  test('the sealed image passes on no owner', async () => {
    const image = await derivedImage(LEAKY);
    const env = await bench.start({ image });
    const id = await docker
      .getImage(image)
      .inspect()
      .then((i) => i.Id);
    const sealed = await docker
      .getImage(`${SEALED_REPOSITORY}:${sealedTag(id, { cwd: '/testbed', user: undefined })}`)
      .inspect();
    expect(sealed.Config.Labels).toMatchObject({
      'swebatch.run': '',
      'swebatch.pid': '',
      'swebatch.sealed.source': id,
    });
    expect(env.info.history).toBe('sealed');
  });

  test('nor a variable of the configuration it was made under', async () => {
    const image = await derivedImage(LEAKY);
    await forget(image);
    await bench.start({ image, config: { env: { OF_ONE_RUN: 'only' } } });
    const other = await bench.start({ image });
    expect((await other.execute('env')).output).not.toContain('OF_ONE_RUN');
  });

  test('HEAD beyond the base commit is refused, unless allowed [T-48]', async () => {
    const image = await derivedImage(LEAKY);
    const probe = await bench.start({ image });
    const first = (await probe.execute('git rev-parse HEAD~1')).output.trim();
    const request = { baseCommit: first };
    await expect(bench.start({ image, request })).rejects.toMatchObject({
      code: 'history_unsealed',
      message: expect.stringMatching(/1 commits after the base commit.*allow_leaky/s),
    });
    const allowed = await bench.start({ image, request, config: { allow_leaky: true } });
    expect(allowed.info.history).toBe('failed');
    expect(allowed.info.notes.join(' ')).toContain('history failed');
  });

  test("one commit of the image's builder on top of the base is fine", async () => {
    const image = await derivedImage(
      `${LEAKY}\ngit -c user.name=SWE-bench -c user.email=setup@swebench.com commit -q --allow-empty -am SWE-bench`,
    );
    const probe = await bench.start({ image });
    const base = (await probe.execute('cat /base')).output.trim();
    const env = await bench.start({ image, request: { baseCommit: base } });
    expect(env.info.history).toBe('sealed');
    expect(env.info.notes.join(' ')).toContain("builder's commit");
  });

  test('a folder that is no repository has nothing to seal', async () => {
    const image = await derivedImage('rm -rf /testbed; mkdir /testbed; echo a > /testbed/a');
    const env = await bench.start({ image });
    expect(env.info.history).toBe('absent');
    await env.execute('echo b > b');
    expect(Buffer.from((await env.capturePatch()).patch).toString()).toContain('+++ b/b');
  });

  test('a repository that cannot be repacked is refused', async () => {
    const image = await derivedImage(
      `${LEAKY}\nf=$(find .git/objects -type f -name '*.pack' | head -1); chmod u+w "$f"; : > "$f"; rm -f .git/objects/info/alternates`,
    );
    await expect(bench.start({ image })).rejects.toMatchObject({ code: 'history_unsealed' });
  });

  afterAll(() => bench.stop());
});
