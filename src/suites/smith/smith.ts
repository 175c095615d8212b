/**
 * SWE-smith: rows whose `patch` puts a bug into the repository of their image. Test command, test files and log parser are those of the profile that
 * the package `swesmith` has of the repository, and its own grading gives the verdict: it runs in an image of ours, without network.
 */

import { z } from 'zod';
import { stringOf } from '../../base/text/contentText.ts';
import { errorFirst } from '../../base/text/errorFirst.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { RawRow } from '../../dataset/read/row.ts';
import type { Environment } from '../../environment/environment.ts';
import type { GradeRequest, PlannedGrading } from '../../grading/gradingFrame.ts';
import { type Judged, lostResult, planOwnRules, textInside } from '../../grading/ownRules.ts';
import { type Asker, askPython, type ParserAnswer, parserImage } from '../../grading/parserContainer.ts';
import { PATCH_PATH } from '../../grading/patchAndTests.ts';
import { MARK } from '../../grading/readLog.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { sweBench } from '../sweBench/sweBench.ts';
import profiles from './profiles.json' with { type: 'json' };

const WORK_TREE = '/testbed';

export const smith: Suite = {
  rows: { columns, headIsBase: true },
  needs: (instance) => ({
    container: {
      cwd: WORK_TREE,
      ...(!bringsItsOwn(instance) && {
        startupCommand: `cd ${WORK_TREE} &&\n${withBug(instance, 'hidden')}`,
      }),
    },
  }),
  builds: (instance) => (bringsItsOwn(instance) ? [] : [SMITH_IMAGE]),
  solution,
  grading,
};

const bugOf = ({ extra }: Pick<Instance, 'extra'>): string => stringOf(extra.bug_patch);
/** Rows with an eval script and images of their own are graded as rows of SWE-bench. */
const bringsItsOwn = ({ eval_script }: Pick<Instance, 'eval_script'>): boolean => eval_script != null;

/** The patch of a row is the bug, so that no gold patch stands there. */
function columns(raw: RawRow): RawRow {
  const { patch, ...row } = raw;
  // A row that was written out by us.
  const bug_patch = stringOf(raw.bug_patch) || patch;
  // The convention of the package, in lower case there.
  const [, name = ''] = stringOf(raw.repo).split('/');
  const image = raw.image ?? raw.image_name ?? raw.docker_image;
  const named = `swebench/swesmith.x86_64.${name.replaceAll('__', '_1776_')}`.toLowerCase();
  return { ...row, ...(raw.eval_script ? { patch } : { bug_patch }), ...(!image && { image_name: named }) };
}

/**
 * Puts the bug into the commit that the image begins with, as the branch of the task has it, without asking the network for that branch. `hidden`:
 * without the files of the tests that fail.
 */
function withBug(instance: Instance, tests: 'there' | 'hidden'): string {
  const files = new Set(
    instance.FAIL_TO_PASS.flatMap((name) => (name.includes('::') ? name.split('::', 1) : [])),
  );
  const git = 'git -c user.name=swesmith -c user.email=swesmith@example.com';
  return [
    // Layers of an image have other times than the index.
    'git update-index -q --refresh',
    `base64 -d <<'END' | git apply --index --whitespace=nowarn - &&`,
    ...(Buffer.from(bugOf(instance))
      .toString('base64')
      .match(/.{1,76}/g) ?? []),
    'END',
    ...(tests === 'hidden' && files.size > 0
      ? [`git rm -rqf --ignore-unmatch -- ${[...files].map(shellWord).join(' ')} &&`]
      : []),
    `${git} commit -q --amend --no-verify --no-gpg-sign -m 'Initial commit' &&`,
    // No name leads to the code without the bug.
    'git reflog expire --expire=now --all',
  ].join('\n');
}

function solution(instance: Instance) {
  if (bringsItsOwn(instance)) return undefined;
  return {
    async apply(
      environment: Environment,
      { timeoutS, signal }: { timeoutS: number; signal?: AbortSignal | undefined },
    ) {
      await environment.putFile(PATCH_PATH, bugOf(instance));
      const command = `git apply --reverse --whitespace=nowarn ${PATCH_PATH}; code=$?; rm -f ${PATCH_PATH}; exit $code`;
      const { exitCode, output, timedOut } = await environment.execute(command, {
        cwd: WORK_TREE,
        timeoutS,
        signal,
      });
      const says =
        exitCode === 0
          ? 'the bug was taken back'
          : `the bug cannot be taken back: ${errorFirst(output, 400)}`;
      return { says, timedOut };
    },
  };
}

// The grading by the package needs the row's columns only; profiles of Go also look into the repository for the files of tests.

const PACKAGE = 'swesmith 0.0.9';
/** Packages that its profiles and its grading load; all that both name would be 460 MB. */
export const LOADED = 'beautifulsoup4 chardet docker ghapi python-dotenv requests tqdm unidiff';
export const SMITH_IMAGE = parserImage(
  'FROM python:3.12-slim',
  `RUN pip install --no-cache-dir --no-deps ${PACKAGE.replace(' ', '==')} swebench==4.1.0 && pip install --no-cache-dir ${LOADED}`,
);

/** Stand-ins for packages that are named at the head of their files and never used here. */
const WITHOUT = `import sys
from unittest.mock import MagicMock
for name in ('datasets', 'swebench.harness.modal_eval'):
    sys.modules[name] = MagicMock()
`;

/** The names in its registry, which has each as its mirror's too: `swesmith/NAME`. */
const KNOWN: ReadonlySet<string> = new Set(profiles.flatMap((name) => [name, `swesmith/${name}`]));
const unknown = ({ instance_id, repo }: Instance): string =>
  `${instance_id}: ${PACKAGE} has no profile for ${repo}: bring images, eval_script and log_parser, as docs/grading.md says`;

const PROFILE = `${WITHOUT}import os
from swesmith.profiles import registry
with open('row.json', encoding='utf-8') as file:
    row = json.load(file)
answer = None
if row['repo'] in registry:
    profile = registry.get_from_inst(row)
    profile._cache_mirror_exists = True
    os.makedirs(profile.repo_name, exist_ok=True)
    with open('functions.txt', encoding='utf-8') as functions:
        for line in functions:
            path, _, text = line.partition(':')
            path = os.path.normpath(os.path.join(profile.repo_name, path))
            if text and path.startswith(profile.repo_name + os.sep):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'a', encoding='utf-8') as file:
                    file.write(text)
    failing, passing = profile.get_test_files(row)
    answer = {'command': profile.get_test_cmd(row)[0], 'files': [*failing, *passing]}
`;
const FUNCTIONS = `grep -rE --include='*_test.go' '^[[:space:]]*func[[:space:]]' .`;
const profileSchema = z.object({ command: z.string(), files: z.array(z.string()) }).nullable();

const REPORT = `${WITHOUT}from swesmith.harness.grading import get_eval_report
with open('row.json', encoding='utf-8') as file:
    answer = get_eval_report({'model_patch': 'x'}, json.load(file), 'log.txt')
`;
const listsSchema = z.object({ success: z.array(z.string()), failure: z.array(z.string()) });
const reportSchema = z.object({
  resolved: z.boolean(),
  /** Absent where the log is not read. */
  tests_status: z
    .object({
      FAIL_TO_PASS: listsSchema,
      PASS_TO_PASS: listsSchema,
      FAIL_TO_FAIL: listsSchema,
      PASS_TO_FAIL: listsSchema,
    })
    .optional(),
});

function ask(
  instance: Instance,
  program: string,
  files: Readonly<Record<string, string>>,
  request: Asker,
): Promise<ParserAnswer> {
  const { instance_id: instanceId, repo, FAIL_TO_PASS, PASS_TO_PASS, extra } = instance;
  const row = { ...extra, instance_id: instanceId, repo, FAIL_TO_PASS, PASS_TO_PASS, patch: bugOf(instance) };
  const all = { ...files, 'row.json': JSON.stringify(row) };
  return askPython({ instanceId, images: [SMITH_IMAGE.image], program, files: all }, request);
}

/** The verdict of the package's own grading on a log of tests. */
export async function smithVerdict(instance: Instance, log: string, request: Asker): Promise<Judged> {
  const answer = await ask(instance, REPORT, { 'log.txt': log }, request);
  if (!answer.ok) return { ...answer, log };
  const report = reportSchema.safeParse(answer.value);
  if (!report.success) return lostResult(`${PACKAGE} gave no report`, log);
  const { resolved, tests_status: status } = report.data;
  if (!status) return lostResult('its log does not have the marks around the tests', log);
  return { ok: true, verdict: { resolved, status }, log, applied: true };
}

// The eval.sh of SWE-smith runs on the patch, applied by the commands that the package tries, with the files of tests as they were.

const FOLDER = '/swebatch-smith';
const [BEGIN, PATCH, RESTORE, TESTS] = ['begin.sh', 'patch.diff', 'restore.sh', 'eval.sh'].map(
  (name) => `${FOLDER}/${name}`,
) as [string, string, string, string];
const [STATE, SAID] = [`${FOLDER}/state`, `${FOLDER}/said`];

const SCRIPT = `cd ${WORK_TREE} || exit 1
echo begun >${STATE}
bash ${BEGIN} >${SAID} 2>&1 || exit 1
echo bug >${STATE}
for apply in 'git apply --verbose' 'git apply --verbose --reject' 'patch --batch --fuzz=5 -p1 -i'; do
  if $apply ${PATCH} >${SAID} 2>&1; then echo applied >${STATE}; break; fi
done
[ "$(cat ${STATE})" = applied ] || exit 1
bash ${RESTORE} >/dev/null 2>&1
exec bash ${TESTS}
`;

const evalScript = (command: string): string =>
  [
    ...['#!/bin/bash', 'set -uxo pipefail', `cd ${WORK_TREE}`],
    ...[`: '${MARK.start}'`, command, `: '${MARK.end}'`, ''],
  ].join('\n');

async function profileOf(instance: Instance, environment: Environment, request: GradeRequest) {
  const at = { cwd: WORK_TREE, timeoutS: 120, signal: request.signal };
  const { output } = await environment.execute(`${FUNCTIONS} | cat`, at);
  const answer = await ask(instance, PROFILE, { 'functions.txt': output }, request);
  if (!answer.ok) return { ...answer, log: '' };
  const profile = profileSchema.parse(answer.value);
  if (profile) return { ok: true, ...profile } as const;
  return { ok: false, outcome: 'ungradable', message: unknown(instance), log: '' } as const;
}

function grading(instance: Instance, options: SpecOptions): PlannedGrading {
  if (bringsItsOwn(instance)) return sweBench.grading(instance, options);
  if (!KNOWN.has(instance.repo)) return { ok: false, reason: unknown(instance) };
  return planOwnRules(
    {
      instance,
      script: SCRIPT,
      cwd: WORK_TREE,
      container: { cwd: WORK_TREE },
      decides: { bug: bugOf(instance), package: SMITH_IMAGE.image },
      async files(patch, environment, request) {
        const profile = await profileOf(instance, environment, request);
        if (!profile.ok) return profile;
        const restore = `git checkout -- ${profile.files.map(shellWord).join(' ')}`;
        return {
          [BEGIN]: withBug(instance, 'there'),
          [PATCH]: patch,
          [RESTORE]: profile.files.length > 0 ? restore : '',
          [TESTS]: evalScript(profile.command),
        };
      },
      async judge(environment, run, request) {
        const state = (await textInside(environment, STATE, request.signal))?.text.trim();
        if (state === 'applied') return smithVerdict(instance, run.log, request);
        const said = (await textInside(environment, SAID, request.signal))?.text ?? '';
        const log = `${run.log}${said}`;
        const tail = errorFirst(said, 400);
        if (state === 'bug')
          return { ok: false, outcome: 'apply_failed', message: `the patch does not apply: ${tail}`, log };
        const message = `the bug of the task does not apply to what its image holds: ${tail}`;
        return { ok: false, outcome: 'ungradable', message, log };
      },
    },
    options.harness,
  );
}
