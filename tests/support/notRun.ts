// Says at the end of `npm test` what did not run: how many tests, why, and the command that would run them. CI fails where the reason is none of those listed here.
import { relative } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { ofTests, type Project, reachedFrom, textOf } from './projects.ts';

export interface Skipped {
  readonly project: Project;
  /** From the root. */
  readonly file: string;
  readonly title: string;
  /** What `context.skip` was told. */
  readonly note?: string | undefined;
}

interface Cause {
  readonly why: string;
  of(test: Skipped): boolean;
  /** What makes them run, before vitest is called with their files. */
  readonly first?: string;
  /** It may be so in CI, which has everything that can be installed. */
  readonly listed?: true;
}

const says =
  (text: RegExp) =>
  ({ title, note = '' }: Skipped): boolean =>
    text.test(`${title} ${note}`);

const readsShared = ({ file }: Skipped): boolean =>
  [...reachedFrom(file, ofTests)].some((one) => ofTests(one) && /['/]shared['/]/.test(textOf(one)));

/** The first that fits is told. */
const CAUSES: readonly Cause[] = [
  {
    why: 'commands on this machine have no container around them; docker/conformance.test.ts proves the same',
    of: ({ file }) => file === 'tests/environment/local/conformance.test.ts',
    listed: true,
  },
  {
    why: 'no environment of your own is named',
    of: says(/SWEBATCH_TEST_ENVIRONMENT/),
    first: 'SWEBATCH_TEST_ENVIRONMENT=MODULE',
    listed: true,
  },
  {
    why: 'clones of published suites are not at hand',
    of: says(/SWEBATCH_SUITES/),
    first: 'SWEBATCH_SUITES=FOLDER',
    listed: true,
  },
  {
    why: 'Claude Code is under commercial terms',
    of: says(/SWEBATCH_TEST_CLAUDE_CODE/),
    first: 'SWEBATCH_TEST_CLAUDE_CODE=1',
    listed: true,
  },
  { why: 'there is no systemd here', of: says(/systemd-analyze/), listed: true },
  {
    why: 'the clock of this machine gave no chance',
    of: says(/no snapshot was taken within a second/),
    listed: true,
  },
  { why: 'a package could not be fetched', of: says(/cannot be had from/) },
  { why: 'only root mounts a file system', of: says(/mounting a file system needs root/), first: 'sudo -E' },
  {
    why: 'published data is not beside the repository, in ../shared',
    of: readsShared,
    listed: true,
  },
  { why: 'there is no C compiler', of: says(/the relay is not built/), first: 'npm run setup &&' },
  {
    why: 'there is no Chromium',
    of: ({ project }) => project === 'browser',
    first: 'node scripts/setup.mjs --for-tests &&',
  },
  {
    why: 'no Docker engine answers, or it has no registry or second engine beside it',
    of: ({ project }) => project === 'engine',
    first: 'node scripts/setup.mjs --for-tests &&',
  },
];

const UNKNOWN: Cause = { why: 'of a reason that tests/support/notRun.ts does not list', of: () => true };

const many = (n: number) => (n === 1 ? '1 test' : `${n} tests`);

/** A line a reason, and how many tests have none of the listed ones. */
export function notRun(skipped: readonly Skipped[]): { lines: string[]; unlisted: number } {
  const groups = Map.groupBy(skipped, (test) => CAUSES.find((cause) => cause.of(test)) ?? UNKNOWN);
  const lines = [...groups].map(([{ why, first }, tests]) => {
    const files = [...new Set(tests.map(({ file }) => file))];
    const notes = new Set(tests.flatMap(({ note }) => note ?? []));
    const detail = notes.size === 1 ? ` (${[...notes][0]!.trim()})` : '';
    const what = files.length > 12 ? `--project ${tests[0]!.project}` : files.join(' ');
    return `not run: ${many(tests.length)}, because ${why}${detail}: ${first ? `${first} ` : ''}npx vitest run ${what}`;
  });
  const unlisted = [...groups]
    .filter(([cause]) => cause.listed !== true)
    .reduce((sum, [, tests]) => sum + tests.length, 0);
  return { lines, unlisted };
}

export default class NotRun implements Reporter {
  private vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // Who asks for some titles does not want to hear of the others.
    if (this.vitest?.config.testNamePattern) return;
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test): Skipped => {
        const result = test.result();
        return {
          project: module.project.name as Project,
          file: relative(this.vitest!.config.root, module.moduleId),
          title: test.fullName,
          note: result.state === 'skipped' ? result.note : undefined,
        };
      }),
    );
    const { lines, unlisted } = notRun(skipped);
    for (const line of lines) process.stdout.write(`${line}\n`);
    if (process.env.CI !== '1' || unlisted === 0) return;
    process.stdout.write(`${many(unlisted)} must not be skipped in CI\n`);
    process.exitCode = 1;
  }
}
