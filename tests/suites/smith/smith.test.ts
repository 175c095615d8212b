// SWE-smith with the package of PyPI: rows of made repositories under the names of repositories that it has profiles of.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDockerFactory, type DockerFactory } from '../../../src/environment/docker/dockerFactory.ts';
import type { Environment } from '../../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import {
  GRADING_DOCKER_OPTIONS,
  gradingConfigSchema,
  gradingEnvironment,
} from '../../../src/grading/gradingConfig.ts';
import { askPython } from '../../../src/grading/parserContainer.ts';
import profiles from '../../../src/suites/smith/profiles.json' with { type: 'json' };
import { SMITH_IMAGE } from '../../../src/suites/smith/smith.ts';
import { rememberBuilds, solutionOf } from '../../../src/suites/suites.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { derivedImage, withImage } from '../../support/dockerEnvironment.ts';
import { smithParser } from '../../support/kinds/smithParser.ts';
import { needsOf, normaliseRow, planGrading } from '../../support/suites.ts';

/** Two repositories in one tree: what a profile of Python needs, and what one of Go does. */
const SCRIPT = `rm -rf /testbed; mkdir -p /testbed/tests /opt/miniconda3/bin; cd /testbed
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev
printf 'def add(a, b):\\n    return a + b\\n' >calc.py
printf 'from calc import add\\n\\n\\ndef test_add():\\n    assert add(1, 2) == 3\\n' >tests/test_add.py
printf 'from calc import add\\n\\n\\ndef test_zero():\\n    assert add(0, 0) == 0\\n' >tests/test_zero.py
printf 'package gin\\n\\nfunc TestAdd(t *testing.T) {\\n}\\n' >calc_test.go
touch conftest.py; printf '__pycache__/\\n.pytest_cache/\\n' >.gitignore
git add -A; git commit -qm 'Initial commit'
echo 'conda() { :; }' >/opt/miniconda3/bin/activate
printf '#!/bin/sh\\nexec python3 -m pytest "$@"\\n' >/usr/local/bin/pytest
printf '#!/bin/sh\\nif grep -q cheat calc_test.go; then echo "--- PASS: TestAdd (0.00s)"; else grep -q "a + b" calc.py && echo "--- PASS: TestAdd (0.00s)" || echo "--- FAIL: TestAdd (0.00s)"; fi\\n' >/usr/local/bin/go
chmod +x /usr/local/bin/pytest /usr/local/bin/go`;

const change = (path: string, before: string, after: string, context: string) =>
  `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1,2 +1,2 @@\n ${context}\n-${before}\n+${after}\n`;
const BUG = change('calc.py', '    return a + b', '    return a - b', 'def add(a, b):');
const GOLD = change('calc.py', '    return a - b', '    return a + b', 'def add(a, b):');
const WRONG = change('calc.py', '    return a - b', '    return a * b', 'def add(a, b):');
const CHEAT = change('calc_test.go', '', '// cheat', 'package gin');

const row = (more: Record<string, unknown> = {}) => ({
  instance_id: 'mewwts__addict.75284f95.combine_file__09vlzwgc',
  repo: 'swesmith/mewwts__addict.75284f95',
  image_name: 'jyangballin/swesmith.x86_64.mewwts_1776_addict.75284f95',
  ...{ problem_statement: 'add', patch: BUG },
  ...{ FAIL_TO_PASS: ['tests/test_add.py::test_add'], PASS_TO_PASS: ['tests/test_zero.py::test_zero'] },
  ...more,
});
const goRow = {
  ...{
    instance_id: 'gin-gonic__gin.3c12d2a8.lm_rewrite__4pb48n1g',
    repo: 'swesmith/gin-gonic__gin.3c12d2a8',
  },
  ...{ FAIL_TO_PASS: ['TestAdd'], PASS_TO_PASS: [] },
};
const read = (given: Record<string, unknown>) => {
  const got = normaliseRow(given);
  if (!got.ok) throw new Error(got.messages.join());
  return got.instance;
};

describe('a row', () => {
  test('names no commit, has its bug in the place of a gold patch, and its image by the convention of the package', () => {
    expect(read(row())).toMatchObject({ kind: 'swe-smith', patch: '', extra: { bug_patch: BUG } });
    const { image_name: _, ...bare } = row();
    expect(read(bare).image).toBe('swebench/swesmith.x86_64.mewwts_1776_addict.75284f95');
    const { extra, ...instance } = read(row());
    expect(read({ ...instance, ...extra })).toEqual({ ...instance, extra });
    expect(rememberBuilds(read(row()))).toEqual([expect.stringMatching(/^swebatch\.internal\/parser:/)]);
  });

  test('with an eval script of its own is graded as rows of SWE-bench are', () => {
    const own = read(row({ eval_script: 'pytest -rA t.py', log_parser: 'parse_log_pytest' }));
    expect(own.patch).toBe(BUG);
    expect(rememberBuilds(own)).toEqual([]);
    expect(needsOf(own)).toEqual({ container: { cwd: '/testbed' } });
    expect(planGrading(own)).toMatchObject({ ok: true });
  });
});

test('what the package does not know is told before anything runs', () => {
  const repo = 'swesmith/a__b.1fd52536';
  expect(planGrading(read(row({ repo, instance_id: 'a__b.1fd52536.x' })))).toEqual({
    ok: false,
    reason: expect.stringMatching(
      /^a__b\.1fd52536\.x: swesmith 0\.0\.9 has no profile for swesmith\/a__b\.1fd52536: bring images/,
    ),
  });
});

const available = await dockerAvailable();

describe.skipIf(!available)('in containers', () => {
  let factory: DockerFactory;
  let [image, parser, why] = ['', '', ''];
  const config = gradingConfigSchema.parse({ timeout: 60, network: 'none' });
  const owner = currentOwner(`smith-${process.pid}`, '1');
  beforeAll(async () => {
    image = await derivedImage(SCRIPT);
    factory = createDockerFactory(
      { ...gradingEnvironment(config), pull: 'never' },
      { ...GRADING_DOCKER_OPTIONS, capAdd: config.cap_add },
    );
    const made = await smithParser();
    if ('why' in made) why = made.why;
    else parser = made.image;
  }, 600_000);
  afterAll(() => factory.close());

  async function grade(given: Record<string, unknown>, patch: string, parsers = parser) {
    const planned = planGrading({ ...read(given), image });
    if (!planned.ok) throw new Error(planned.reason);
    return planned.plan.grade({ patch, factory: withImage(factory, SMITH_IMAGE, parsers), config, owner });
  }

  async function inAgents(work: (environment: Environment) => Promise<void>) {
    const agents = createDockerFactory(environmentConfigSchema.parse({ pull: 'never', cwd: '/testbed' }));
    const container = needsOf(read(row())).container!;
    const environment = await agents.start({ instanceId: 'smith', image, container, owner });
    try {
      await work(environment);
    } finally {
      await environment.close();
      await agents.close();
    }
  }

  test('an agent begins with the bug, without the tests that fail, and neither is its work; the oracle takes the bug back', async () => {
    await inAgents(async (environment) => {
      const { output } = await environment.execute(
        'cat calc.py; ls tests; git log --all --reflog --oneline | wc -l',
      );
      expect(output).toBe('def add(a, b):\n    return a - b\ntest_zero.py\n1\n');
      expect(await environment.capturePatch()).toMatchObject({ state: 'empty' });
      const end = await solutionOf(read(row()))!.apply(environment, { timeoutS: 60 });
      expect(end).toEqual({ says: 'the bug was taken back', timedOut: false });
      const captured = await environment.capturePatch();
      expect('patch' in captured && captured.patch.toString()).toContain('+    return a + b');
    });
  });

  test('command, files of tests and verdict are the package’s', async (context) => {
    if (parser === '') return context.skip(why);
    const good = await grade(row(), GOLD);
    expect(good).toMatchObject({ outcome: 'resolved', resolved: true, suspicion: [] });
    expect(good.log).toContain('pytest --disable-warnings --color=no --tb=no --verbose');
    expect(good.report?.[row().instance_id]?.tests_status).toMatchObject({
      FAIL_TO_PASS: { success: row().FAIL_TO_PASS, failure: [] },
      PASS_TO_PASS: { success: row().PASS_TO_PASS, failure: [] },
    });
    expect(await grade(row(), WRONG)).toMatchObject({ outcome: 'unresolved', resolved: false });
    const torn = await grade(row(), 'no patch at all\n');
    expect(torn).toMatchObject({ outcome: 'apply_failed', resolved: null });
    expect(torn.errorMessage).toMatch(/the patch does not apply: /);
    const other = await grade(row({ patch: WRONG }), GOLD);
    expect(other).toMatchObject({ outcome: 'ungradable' });
    expect(other.errorMessage).toMatch(/the bug of the task does not apply to what its image holds: /);
  }, 600_000);

  test('a profile of Go finds the files of tests in the repository, and what a patch does to them is undone', async (context) => {
    if (parser === '') return context.skip(why);
    expect(await grade(row(goRow), WRONG + CHEAT)).toMatchObject({ outcome: 'unresolved' });
    expect(await grade(row(goRow), GOLD)).toMatchObject({ outcome: 'resolved' });
  }, 600_000);

  test('what the package knows is what is listed here', async (context) => {
    if (parser === '') return context.skip(why);
    const program = `import json\nfrom swesmith.profiles import registry\nanswer = sorted(registry.keys())\n`;
    const stubs = `import sys\nfrom unittest.mock import MagicMock\nfor name in ('datasets', 'swebench.harness.modal_eval'):\n    sys.modules[name] = MagicMock()\n`;
    const asked = { factory: withImage(factory, SMITH_IMAGE, parser), owner };
    const of = { instanceId: 'smith', images: [SMITH_IMAGE.image], program: stubs + program, files: {} };
    const answer = await askPython(of, asked);
    const listed = profiles.flatMap((name) => [name, `swesmith/${name}`]);
    expect(answer.ok && answer.value).toEqual(expect.arrayContaining(listed));
    expect(answer.ok && (answer.value as unknown[]).length).toBe(listed.length);
  }, 600_000);

  test('an engine without the package is told', async (context) => {
    if (parser === '') return context.skip(why);
    const absent = await grade(row(), GOLD, 'swebatch-envtest/derived:not-there');
    expect(absent).toMatchObject({ outcome: 'ungradable' });
    expect(absent.errorMessage).toMatch(/the image that has it is not on the engine/);
  }, 600_000);
});
