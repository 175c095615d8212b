// Suites with rules of their own, graded for real in containers of a made repository: their scripts and parsers are data of the row.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDockerFactory, type DockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import {
  GRADING_DOCKER_OPTIONS,
  gradingConfigSchema,
  gradingEnvironment,
} from '../../src/grading/gradingConfig.ts';
import { REBENCH_IMAGE } from '../../src/suites/rebenchV2/rebenchV2.ts';
import { PATCHES, SUM_REPO_SCRIPT, sumRow } from '../grading/fixtures/sumRepo.ts';
import { dockerAvailable } from '../support/docker.ts';
import { derivedImage, withImage } from '../support/dockerEnvironment.ts';
import { needsOf, normaliseRow, planGrading } from '../support/suites.ts';

const available = await dockerAvailable();

/** The same repository in the three places that the suites use. */
const SCRIPT = `${SUM_REPO_SCRIPT}
rm -rf /app /sum /home/fix-run.sh
cp -r /testbed /sum; cp -r /testbed /app
command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
cd /app && printf 'from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n' >tests/test_add.py
git checkout -q -b later && git add -A && git commit -qm tests && git checkout -q main
cat >/home/fix-run.sh <<'END'
cd /testbed
git apply /home/fix.patch
echo "test result ... ignored"
python3 -c "from calc import add; print('test add ...', 'ok' if add(1, 2) == 3 else 'FAILED')"
END
mkdir /r2e_tests
printf 'from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_other():\n    assert add(0, 0) == 1\n' >/r2e_tests/test_1.py
printf 'python3 -W ignore -m pytest -rA r2e_tests\n' >/testbed/run_tests.sh
`;

const PARSER = `import json, sys
tests = []
for line in open(sys.argv[1]):
    parts = line.split()
    if len(parts) > 1 and parts[0] in ('PASSED', 'FAILED'):
        tests.append({'name': parts[1], 'status': parts[0]})
json.dump({'tests': tests}, open(sys.argv[3], 'w'))
`;
const ADD = 'tests/test_add.py::test_add';

describe.skipIf(!available)('suites with rules of their own', () => {
  let factory: DockerFactory;
  let image = '';
  const config = gradingConfigSchema.parse({ timeout: 60, network: 'none' });
  beforeAll(async () => {
    image = await derivedImage(SCRIPT);
    factory = createDockerFactory(
      { ...gradingEnvironment(config), pull: 'never' },
      { ...GRADING_DOCKER_OPTIONS, capAdd: config.cap_add },
    );
  });
  afterAll(() => factory.close());

  async function grade(row: Record<string, unknown>, patch: string | null) {
    const read = normaliseRow(row);
    if (!read.ok) throw new Error(read.messages.join());
    const planned = planGrading({ ...read.instance, image });
    if (!planned.ok) throw new Error(planned.reason);
    return planned.plan.grade({
      patch,
      factory,
      config,
      owner: currentOwner(`own-rules-${process.pid}`, '1'),
    });
  }

  const proRow = (more = {}) => ({
    ...{ instance_id: 'instance_sum__sum-1', repo: 'sum/sum', base_commit: 'main', problem_statement: 'add' },
    ...{ dockerhub_tag: 't', fail_to_pass: `['${ADD}']`, pass_to_pass: "['tests/test_calc.py::test_one']" },
    before_repo_set_cmd: 'git reset --hard main\ngit checkout later -- tests/test_add.py',
    selected_test_files_to_run: "['tests/test_add.py', 'tests/test_calc.py']",
    run_script: 'python -m pytest -rA $(echo "$1" | tr , " ")\n',
    parser: PARSER,
    ...more,
    image,
  });

  test('SWE-bench Pro: script and parser of the row run in the container', async () => {
    const good = await grade(proRow(), PATCHES.gold);
    expect(good).toMatchObject({ outcome: 'resolved', resolved: true });
    expect(good.report?.['instance_sum__sum-1']?.tests_status?.FAIL_TO_PASS.success).toEqual([ADD]);
    expect(good.log).toContain('>>>>> stdout.log');
    expect(good).toMatchObject({ resolvedStrict: true, suspicion: [] });
    const helped = `${PATCHES.gold}diff --git a/conftest.py b/conftest.py
new file mode 100644
--- /dev/null
+++ b/conftest.py
@@ -0,0 +1 @@
+import sys
`;
    expect(await grade(proRow(), helped)).toMatchObject({
      ...{ outcome: 'resolved', resolvedStrict: false },
      suspicion: [{ rule: 'touches_test_setup', evidence: 'conftest.py' }],
    });
    expect(await grade(proRow(), PATCHES.wrong)).toMatchObject({ outcome: 'unresolved', resolved: false });
    const torn = await grade(proRow(), 'diff --git a/calc.py b/calc.py\nnonsense\n');
    expect(torn).toMatchObject({ outcome: 'unresolved', resolved: false });
    expect(torn.errorMessage).toMatch(/does not apply/);
    expect(await grade(proRow(), '')).toMatchObject({ outcome: 'empty_patch', resolved: null });
  });

  test.each([['import sys; open(sys.argv[3], "w").write("[1]")', /not a list of tests/]])(
    'a parser of Pro that gives nothing is no result: %s',
    async (parser, says) => {
      const ended = await grade(proRow({ parser }), PATCHES.gold);
      expect(ended).toMatchObject({ outcome: 'invalid', resolved: false });
      expect(ended.errorMessage).toMatch(says);
    },
  );

  const liveRow = (more: Record<string, unknown>) => {
    const { eval_script: _, ...row } = sumRow(image);
    return { ...row, test_cmds: ['export HERE=1', 'python3 -m pytest -rA'], log_parser: 'pytest', ...more };
  };
  test('SWE-bench-Live: commands of the row, read by our reader of pytest or by its own Python without network', async () => {
    expect(await grade(liveRow({}), PATCHES.wrong)).toMatchObject({ outcome: 'unresolved' });
    const log_parser = `def parser(log: str) -> dict[str, str]:
    import socket
    try:
        socket.create_connection(('1.1.1.1', 53), timeout=1)
        return {'network': 'pass'}
    except OSError:
        pass
    return {w[1]: 'pass' if w[0] == 'PASSED' else 'fail' for w in map(str.split, log.splitlines()) if len(w) > 1}
`;
    const own = { log_parser, test_cmds: ['export HERE=1', 'python3 -m pytest -rA >out.txt 2>&1'] };
    const print_cmds = ['test "$HERE" = 1 && cat out.txt'];
    expect(await grade(liveRow({ ...own, print_cmds }), PATCHES.gold)).toMatchObject({ outcome: 'resolved' });
    const throws = 'def parser(log):\n    raise ValueError("no")\n';
    const broken = await grade(liveRow({ ...own, print_cmds, log_parser: throws }), PATCHES.gold);
    expect(broken).toMatchObject({ outcome: 'invalid', resolved: null });
    expect(broken.errorMessage).toMatch(/ValueError: no/);
  });

  test('Multi-SWE-bench: the script of the image, compared with the runs that the row records', async () => {
    const none = { passed_tests: [], failed_tests: [], skipped_tests: [] };
    const row = {
      ...{
        org: 'clap-rs',
        repo: 'clap',
        number: 7,
        base: { sha: 'main' },
        fix_patch: 'x',
        title: 't',
        body: 'b',
      },
      ...{ run_result: none, test_patch_result: { ...none, failed_tests: ['add'] }, f2p_tests: { add: {} } },
    };
    expect(await grade(row, PATCHES.gold)).toMatchObject({ outcome: 'resolved' });
    expect(await grade(row, PATCHES.wrong)).toMatchObject({ outcome: 'unresolved' });
  });

  const r2eRow = (expected: Record<string, string>) => ({
    ...{ repo_name: 'numpy', docker_image: image, commit_hash: 'abc', problem_statement: 'add' },
    expected_output_json: JSON.stringify(expected),
  });
  test("R2E-Gym: the image's own tests, resolved by exactly the expected statuses", async () => {
    const expected = { test_add: 'PASSED', test_other: 'FAILED' };
    const good = await grade(r2eRow(expected), PATCHES.gold);
    expect(good).toMatchObject({ outcome: 'resolved', resolved: true, suspicion: [] });
    expect(await grade(r2eRow(expected), PATCHES.wrong)).toMatchObject({ outcome: 'unresolved' });
    const more = { ...expected, test_third: 'PASSED' };
    expect(await grade(r2eRow(more), PATCHES.gold)).toMatchObject({ outcome: 'unresolved' });
    const torn = await grade(r2eRow(expected), `${PATCHES.gold}garbage\n@@ -1 +1 @@\n`);
    expect(torn.log).toContain('short test summary info');
  });

  test('R2E-Gym: the container of an agent has no tests, and that they are gone is none of its work', async () => {
    const read = normaliseRow(r2eRow({ test_add: 'PASSED' }));
    if (!read.ok) throw new Error(read.messages.join());
    const agents = createDockerFactory(environmentConfigSchema.parse({ pull: 'never', cwd: '/testbed' }));
    const environment = await agents.start({
      ...{ instanceId: read.instance.instance_id, image, container: needsOf(read.instance).container! },
      owner: currentOwner(`own-rules-${process.pid}`, '2'),
    });
    try {
      const found = await environment.execute('find / -xdev -name r2e_tests -o -xdev -name run_tests.sh');
      expect(found.output.trim()).toBe('');
      expect(await environment.capturePatch()).toMatchObject({ state: 'empty' });
    } finally {
      await environment.close();
      await agents.close();
    }
  });

  const rebenchRow = (...test_cmd: string[]) => ({
    ...{ instance_id: 'sum__sum-1', repo: 'sum/sum', base_commit: 'main', problem_statement: 'add' },
    ...{ image_name: 'docker.io/swerebenchv2/sum:1', FAIL_TO_PASS: ['TestA'], PASS_TO_PASS: [] },
    test_patch: 'diff --git a/t b/t\nnew file mode 100644\n--- /dev/null\n+++ b/t\n@@ -0,0 +1 @@\n+t\n',
    install_config: { test_cmd, log_parser: 'parse_log_gotest' },
  });

  test('SWE-rebench V2: a warning without an end of line stands before no status, and an error of a test is none of a patch', async () => {
    const tells = `printf 'warning: x' >&2; printf '%s\\r\\n' '--- PASS: TestA (0.00s)' 'error: told by a test'`;
    const { outcome, log, errorMessage } = await grade(rebenchRow(tells), PATCHES.gold);
    expect({ outcome, errorMessage }).toEqual({ outcome: 'resolved', errorMessage: null });
    expect(log).toMatch(/error: told by a test\r\n[\s\S]*Applied patch t cleanly\.[\s\S]*warning: x$/);
    const bad = await grade(rebenchRow('echo "--- PASS: TestA (0.00s)"'), 'no patch at all\n');
    expect(bad).toMatchObject({
      outcome: 'unresolved',
      errorMessage: expect.stringContaining('does not apply'),
    });
  });

  test('SWE-rebench V2: a shape that is not read here is read by the Python of its image, by the words of eval.py', async () => {
    const parsers = await derivedImage(`mkdir -p /opt/swe-rebench-v2/lib/agent
cat >/opt/swe-rebench-v2/lib/agent/log_parsers.py <<'END'
def parse_log_julia(log):
    if 'broken' in log:
        raise ValueError('no')
    return {line.split(' ', 1)[1]: line.split()[0] for line in log.split('\\n') if line.startswith(('PASSED ', 'FAILED '))}
END`);
    const read = async (...printed: string[]) => {
      const row = rebenchRow(`printf '%s\\r\\n' ${printed.map((line) => `'${line}'`).join(' ')}`);
      const install_config = { ...row.install_config, log_parser: 'parse_log_julia' };
      const got = normaliseRow({ ...row, install_config });
      if (!got.ok) throw new Error(got.messages.join());
      const planned = planGrading({ ...got.instance, image });
      if (!planned.ok) throw new Error(planned.reason);
      const own = withImage(factory, REBENCH_IMAGE, parsers);
      const owner = currentOwner(`own-rules-${process.pid}`, '3');
      const { outcome, errorMessage } = await planned.plan.grade({
        patch: PATCHES.gold,
        factory: own,
        config,
        owner,
      });
      return [outcome, errorMessage];
    };
    expect(await read('PASSED TestA (0.5s)', 'FAILED b')).toEqual(['resolved', null]);
    expect(await read('PASSED TestA', 'PASSED b')).toEqual(['unresolved', null]);
    expect(await read('broken')).toEqual([
      'invalid',
      expect.stringMatching(/its log parser gave up: ValueError: no/),
    ]);
  });
});
