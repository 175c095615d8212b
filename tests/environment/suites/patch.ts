// The work brought home: whatever the agent did to files, git and configuration, the patch gives the same tree on a clean checkout.
import { describe, expect, test } from 'vitest';
import type { Environment } from '../../../src/environment/environment.ts';
import type { Bench } from './bench.ts';

/** Applies the patch to a copy of the start tree and lists what differs from the work tree: nothing, if the patch is right. */
async function differences(env: Environment, patch: Uint8Array, workTree: string): Promise<string> {
  await env.putFile('/tmp/swebatch-check/patch', patch);
  const result = await env.execute(
    `cd /tmp/swebatch-check && GIT_CEILING_DIRECTORIES=/tmp git -C start apply --whitespace=nowarn ../patch 2>&1 && diff -r --no-dereference start '${workTree}' -x .git -x ignored -x node_modules -x .venv -x '*.pyc'`,
    { cwd: '/tmp' },
  );
  return result.output;
}

/** A copy of the start tree outside of any repository, made before the agent begins. */
const keepStart = (workTree: string) =>
  `rm -rf /tmp/swebatch-check && mkdir -p /tmp/swebatch-check && cp -a '${workTree}' /tmp/swebatch-check/start && rm -rf /tmp/swebatch-check/start/.git`;

/** Starts an environment that keeps a copy of its start tree. */
const starter =
  (bench: Bench) =>
  (setup = 'true'): Promise<Environment> =>
    bench.start({ setup: `set -e; ${setup}; ${keepStart(bench.workTree())}` });

/** What the agent can do to its tree. None of it depends on how commands travel. */
export function patchSuite(bench: Bench): void {
  const start = starter(bench);

  describe('patch', () => {
    test('nothing changed: empty [T-47]', async () => {
      const env = await start();
      await env.execute('cat README.md; git status; touch README.md');
      expect(await env.capturePatch()).toEqual({ patch: new Uint8Array(0), state: 'empty', warnings: [] });
    });

    test.each<[string, string, string?]>([
      ['no newline at the end', 'printf "no newline" >> README.md; printf x > new'],
      [
        'blank context and blank lines at the end',
        'sed -i "s/line 3/changed/" blank.txt; printf "\\n\\n" >> blank.txt',
        'printf "\\nline 2\\nline 3\\n\\n\\n" > blank.txt; git add -A; git commit -qm blank',
      ],
      ['white space only', 'sed -i "s/^/  /" src/a.py; printf "\\t \\n" > tabs'],
      ['mode only', 'chmod +x src/a.py'],
      ['an empty new file', ': > empty'],
      [
        'a deletion and a rename',
        'rm README.md; git mv src/a.py src/b.py 2>/dev/null || mv src/a.py src/b.py',
      ],
      [
        'strange names',
        `mkdir 'a b'; echo 1 > 'a b/c d'; echo 2 > 'ünï 😀'; echo 3 > '"quote"'; echo 4 > $'new\\nline'; echo 5 > -- ; echo 6 > '*[star]?'; echo 7 > $'tab\\there'; echo 8 > 'back\\slash'`,
      ],
      [
        'binary, CRLF and invalid UTF-8',
        `head -c 5000 /dev/urandom > bin; printf 'a\\r\\nb\\r\\n' > crlf; printf '\\xff\\xfe\\n' > invalid; printf 'x\\r\\ny changed\\r\\nz\\r\\n' > old-crlf`,
        `printf 'x\\r\\ny\\r\\nz\\r\\n' > old-crlf; git add -A; git commit -qm crlf`,
      ],
      [
        'symbolic links',
        'ln -s README.md link; ln -s /nowhere dangling; rm src/a.py; ln -s ../README.md src/a.py',
      ],
      [
        'a file that became a folder and a folder that became a file',
        'rm README.md; mkdir README.md; echo x > README.md/x; rm -rf src; echo y > src',
      ],
      ['a link to a folder in place of the folder', 'mv src src2; ln -s src2 src'],
      [
        'attributes that would change bytes',
        `printf '* text=auto eol=crlf\\n*.bin -diff\\n*.id ident\\n*.f filter=x\\n' > .gitattributes; printf 'a\\r\\nb\\n' > mixed; printf '$Id$\\n' > k.id; printf x > a.bin; echo f > a.f; git config filter.x.clean 'echo CLEANED'`,
      ],
      ['committed work', 'echo c > c; git add c; git commit -qm c; echo d > d'],
      ['staged and unstaged work', 'echo s > s; git add s; echo more >> s; echo u >> README.md'],
      ['a stash', 'echo s >> README.md; git stash -q; echo after > after'],
      [
        'another branch and an amended commit',
        'git checkout -qb other; echo o > o; git add -A; git commit -qm o; git commit -q --amend -m p; echo q >> o',
      ],
      ['a deleted .git', 'echo x >> README.md; rm -rf .git'],
      [
        'a deleted index and a broken HEAD',
        'echo x >> README.md; rm -f .git/index; echo garbage > .git/HEAD',
      ],
      ['a locked index', 'echo x >> README.md; : > .git/index.lock'],
      [
        'skip-worktree and assume-unchanged',
        'git update-index --skip-worktree README.md; git update-index --assume-unchanged src/a.py; echo x >> README.md; echo y >> src/a.py',
      ],
      [
        'untracked files of the start [T-43]',
        'echo mine > mine; echo edited >> build/lib/out.js',
        'mkdir -p build/lib; printf "one\\r\\n" > build/lib/out.js; echo junk > junk.txt',
      ],
      ['a folder without rights', 'mkdir locked; echo x > locked/x; chmod 700 locked; echo y > y'],
    ])('%s [T-40, T-41]', async (_name, work, setup) => {
      const env = await start(setup);
      await env.execute(work);
      const captured = await env.capturePatch();
      expect(captured.warnings).toEqual([]);
      expect(captured.state).toBe('ok');
      expect(await differences(env, captured.patch, bench.workTree())).toBe('');
    });

    test('files of the start that were never committed are not in the patch', async () => {
      const env = await start('mkdir -p build; echo old > build/x; echo a >> README.md');
      await env.execute('echo new > new');
      const { patch } = await env.capturePatch();
      const files = [
        ...Buffer.from(patch)
          .toString()
          .matchAll(/^diff --git a\/(\S+)/gm),
      ].map((m) => m[1]);
      expect(files).toEqual(['new']);
    });

    test('ignored files stay out, also when .gitignore is deleted later', async () => {
      const env = await start(
        'mkdir -p node_modules/m .venv; echo m > node_modules/m/i.js; echo v > .venv/v; echo p > x.pyc',
      );
      await env.execute('echo 2 > node_modules/m/j.js; echo q > y.pyc; echo keep > keep');
      await env.execute('sed -i /node_modules/d .gitignore');
      const text = Buffer.from((await env.capturePatch()).patch).toString();
      expect(text).toContain('+++ b/keep');
      expect(text).not.toMatch(/[ab]\/(node_modules|\.venv)|[xy]\.pyc/);
    });

    test('FIFOs and sockets neither hang nor appear; a tracked file that became one counts as deleted [T-42]', async () => {
      const env = await start();
      await env.execute(
        'mkfifo pipe; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'sock\')"; rm README.md; mkfifo README.md; echo x > x',
      );
      const captured = await env.capturePatch();
      const text = Buffer.from(captured.patch).toString();
      expect(captured.state).toBe('ok');
      expect(text).toContain('deleted file mode 100644');
      expect(text).not.toMatch(/b\/pipe|b\/sock/);
      expect(captured.warnings.join(' ')).toContain('README.md');
    });

    test('embedded repositories are dropped with a warning, whatever their state [T-42]', async () => {
      const env = await start();
      await env.execute(
        'git init -q full && (cd full && echo a > a && git add a && git -c user.name=x -c user.email=x@y commit -qm a); git init -q unborn; echo b > unborn/b; git add full 2>/dev/null; echo x > x; git init -q src',
      );
      await env.execute('echo inside >> src/a.py; echo new > src/new.py');
      const captured = await env.capturePatch();
      const text = Buffer.from(captured.patch).toString();
      expect(captured.state).toBe('ok');
      expect(text).not.toMatch(/Subproject|160000|b\/full|b\/unborn/);
      expect(captured.warnings.filter((w) => /full|unborn/.test(w))).toHaveLength(2);
      // A repository made over tracked files hides nothing of them.
      expect(text).toContain('+inside');
      expect(text).toContain('+++ b/src/new.py');
      expect(text).toContain('+++ b/x');
    });

    test('git configuration, hooks, drivers and aliases of the repository are neither used nor run [T-45]', async () => {
      const env = await start();
      await env.execute(`
        printf '#!/bin/sh\\ntouch /tmp/swebatch-hook-ran; echo hijacked; exit 1\\n' > /tmp/swebatch-evil; chmod +x /tmp/swebatch-evil
        for k in diff.external core.fsmonitor core.pager diff.x.textconv diff.x.command filter.x.clean filter.x.smudge core.editor alias.diff-index; do git config $k /tmp/swebatch-evil; done
        git config color.ui always; git config diff.noprefix true; git config diff.mnemonicPrefix true; git config core.quotePath false; git config core.autocrlf true; git config diff.context 0; git config core.hooksPath /tmp
        git config core.excludesFile /tmp/swebatch-exclude; printf '*\\n' > /tmp/swebatch-exclude; printf '*\\n' > .git/info/exclude
        for h in pre-commit post-index-change reference-transaction fsmonitor-watchman; do cp /tmp/swebatch-evil .git/hooks/$h; done
        printf '* diff=x filter=x -text\\n*.py -diff\\n' > .git/info/attributes
        git config --global diff.external /tmp/swebatch-evil 2>/dev/null
        rm -f /tmp/swebatch-hook-ran
        printf 'a\\r\\n' > crlf; printf 'changed\\n' >> src/a.py; rm -f /tmp/swebatch-hook-ran
      `);
      const captured = await env.capturePatch();
      expect(captured.state).toBe('ok');
      expect(
        (
          await env.execute(
            'ls /tmp/swebatch-hook-ran 2>&1; git config --global --unset diff.external; rm -f /tmp/swebatch-evil /tmp/swebatch-exclude',
          )
        ).output,
      ).toContain('No such file');
      const text = Buffer.from(captured.patch).toString();
      expect(text).toContain('--- a/src/a.py\n+++ b/src/a.py');
      expect(text).toContain('+a\r\n');
      expect(text).not.toMatch(/hijacked|\x1b\[/);
    });

    test.skipIf(!bench.can.container)('a work tree owned by somebody else [T-44]', async () => {
      const env = await start('chown -R 1234:1234 .');
      await env.execute('echo x >> README.md');
      const before = await env.execute(
        'stat -c %u README.md src .git; git config --global --list 2>&1 | wc -l',
      );
      const captured = await env.capturePatch();
      expect(captured.state).toBe('ok');
      expect(await differences(env, captured.patch, bench.workTree())).toBe('');
      expect(
        (await env.execute('stat -c %u README.md src .git; git config --global --list 2>&1 | wc -l')).output,
      ).toBe(before.output);
    });

    test.skipIf(!bench.can.container)('a work tree that is gone is a patch of deletions', async () => {
      const env = await bench.start();
      await env.execute(`cd / && rm -rf ${bench.workTree()}`);
      const captured = await env.capturePatch();
      expect(captured.state).toBe('ok');
      expect(Buffer.from(captured.patch).toString()).toContain('deleted file mode');
      const again = await env.capturePatch();
      expect(Buffer.from(again.patch).equals(captured.patch)).toBe(true);
    });
  });
}

/** What a capture needs of the way commands travel. */
export function captureSuite(bench: Bench): void {
  const start = starter(bench);

  describe('capture', () => {
    test('too large: oversized, with the largest files named [T-42]', async () => {
      const env = await bench.start({ config: { max_patch_bytes: 100_000 } });
      await env.execute(
        'head -c 30000000 /dev/urandom > huge.bin; echo small > small; head -c 200000 /dev/urandom > second.bin',
      );
      const captured = await env.capturePatch();
      expect(captured.state).toBe('oversized');
      expect(captured.patch.length).toBe(0);
      expect(captured.warnings.join(' ')).toMatch(/huge\.bin \(30000000 bytes\), second\.bin/);
    });

    test('GIT variables of the environment do not lead the capture astray', async () => {
      const env = await bench.start({
        config: {
          env: {
            GIT_DIR: '/nowhere',
            GIT_INDEX_FILE: '/nowhere/index',
            GIT_EXTERNAL_DIFF: 'false',
            GIT_DIFF_OPTS: '-u0',
          },
        },
      });
      await env.execute('echo x >> README.md');
      const { patch, state } = await env.capturePatch();
      expect(state).toBe('ok');
      expect(Buffer.from(patch).toString()).toContain(' hello\n+x\n');
    });

    test('nothing of ours shows in git status', async () => {
      const env = await start();
      const before = await env.execute(
        'git status --porcelain --ignored; git config --list --local | sort; git for-each-ref; git reflog | wc -l',
      );
      await env.execute(`echo ${'x'.repeat(200_000)} >/dev/null`);
      expect((await env.execute('git status --porcelain')).output).toBe('');
      await env.execute('echo x >> README.md');
      await env.capturePatch();
      await env.execute('git checkout -q README.md');
      const after = await env.execute(
        'git status --porcelain --ignored; git config --list --local | sort; git for-each-ref; git reflog | wc -l',
      );
      expect(after.output).toBe(before.output);
    });

    test('nobody writes any more while the patch is taken, and nothing is alive afterwards', async () => {
      const env = await start();
      await env.execute(
        '(while :; do echo tick >> ticking; sleep 0.01; done) >/dev/null 2>&1 & setsid sleep 31415 >/dev/null 2>&1 & sleep 0.2',
      );
      const captured = await env.capturePatch();
      expect(captured.state).toBe('ok');
      expect(await differences(env, captured.patch, bench.workTree())).toBe('');
      const left = await env.execute(
        `grep -la '3141[5]\\|tic[k]ing' /proc/[0-9]*/cmdline 2>/dev/null | wc -l`,
      );
      expect(left.output).toBe('0\n');
    });

    test('it can be taken again, and after a timeout', async () => {
      const env = await start();
      await env.execute('echo one > one');
      const first = await env.capturePatch();
      await env.execute('echo two > two; sleep 60', { timeoutS: 0.5 });
      const second = await env.capturePatch();
      expect(Buffer.from(first.patch).toString()).not.toContain('b/two');
      expect(Buffer.from(second.patch).toString()).toContain('b/two');
      expect(second.state).toBe('ok');
    });

    test.skipIf(!bench.can.container)(
      'a deleted snapshot is rebuilt from the repository, or said to be lost',
      async () => {
        const env = await start();
        const find = `p=$(ls -d /var/lib/.swebatch.* /var/tmp/.swebatch.* /tmp/.swebatch.* 2>/dev/null); [ -n "$p" ] && rm -rf $p`;
        await env.execute(`${find}; echo x >> README.md`);
        const rebuilt = await env.capturePatch();
        expect([rebuilt.state, rebuilt.warnings.length]).toEqual(['ok', 1]);
        expect(Buffer.from(rebuilt.patch).toString()).toContain('+x');
        await env.execute(`${find}; rm -rf .git`);
        const lost = await env.capturePatch();
        expect(lost.state).toBe('invalid');
        expect(lost.warnings.join(' ')).toContain('deleted');
      },
    );
  });
}
