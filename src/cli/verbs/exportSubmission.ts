/** `swebatch export RUN submission`: flags, the metadata file, and the messages for an entry that is written or refused. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { pathInside } from '../../base/files/pathInside.ts';
import { inert } from '../../base/text/inert.ts';
import { instanceFolder } from '../../formats/harness/logFolders.ts';
import { publishedMessages } from '../../model/dialects/published/publishedMessages.ts';
import { jsonText } from '../../report/render/json.ts';
import {
  parseMetadata,
  SPLITS,
  type Split,
  type SubmissionMetadata,
} from '../../report/submission/metadata.ts';
import { type Box, CHECKLIST } from '../../report/submission/review.ts';
import { type SubmissionResult, writeSubmission } from '../../report/submission/writeSubmission.ts';
import { partFolder } from '../../run/record/exportRun.ts';
import { redactorOfArms } from '../../run/secrets.ts';
import { UserError } from '../../run/userError.ts';
import { VERSION } from '../../run/version.ts';
import type { Store } from '../../store/open.ts';
import { armsOf, type RunRow } from '../../store/records/runs.ts';
import { filled } from '../flags/checks.ts';
import { type Args, flags } from '../flags/flags.ts';
import { EXIT, printData, say } from '../terminal/context.ts';

const splits = Object.keys(SPLITS) as [Split, ...Split[]];
const boxes = Object.keys(CHECKLIST) as [Box, ...Box[]];

export const submissionFlags = flags({
  arm: { type: 'string', describe: 'submission: which arm; needed with several' },
  split: { choices: splits, describe: 'submission: default from the dataset name' },
  system: {
    type: 'string',
    check: filled,
    describe: 'submission: name of the system in the folder name',
  },
  metadata: { type: 'string', describe: 'submission: metadata.yaml to check and use' },
  claim: {
    choices: boxes,
    list: true,
    describe: 'submission: boxes that must be ticked; refused when the record contradicts one',
  },
  acceptModelChange: { type: 'boolean', describe: 'submission: several answering models are meant' },
  acceptFindings: {
    type: 'boolean',
    describe: 'submission: findings of the secrets scan were looked at',
  },
});

type Submission = Args<typeof submissionFlags> & {
  readonly store: Store;
  readonly run: RunRow;
  /** DIR/<run> */
  readonly folder: string;
  readonly to?: string | undefined;
  readonly json: boolean;
};

export async function submit(args: Submission): Promise<number> {
  const arm = pickArm(args);
  const split = args.split ?? splitOf(args.run.dataset_source);
  const result = await writeSubmission({
    store: args.store,
    runId: args.run.id,
    arm: arm.name,
    target: args.to ?? join(args.folder, 'submission'),
    split,
    system: args.system ?? 'swebatch',
    metadata: args.metadata === undefined ? null : readMetadata(args.metadata),
    ...(args.claim ? { claims: Object.fromEntries(args.claim.map((box) => [box, true])) } : {}),
    acceptModelChange: args.acceptModelChange ?? false,
    acceptFindings: args.acceptFindings ?? false,
    redactor: redactorOfArms(process.env, armsOf(args.store, args.run.id)),
    logsFolder: dirname(
      instanceFolder(
        pathInside(args.folder, partFolder(args.store, args.run, arm.name, 1)),
        args.run.name,
        arm.model,
        'instance',
      ),
    ),
    version: VERSION,
    published: publishedMessages,
  });
  if (args.json) printData(jsonText(result));
  return tell(result, args.json);
}

function pickArm(args: Submission): { name: string; model: string } {
  const arms = armsOf(args.store, args.run.id);
  const found = args.arm === undefined ? arms : arms.filter((a) => a.name === args.arm);
  const [only] = found;
  if (only && found.length === 1) return only;
  throw new UserError(
    args.arm === undefined
      ? `${args.run.name} has several arms`
      : `${args.run.name} has no arm "${args.arm}"`,
    { hint: `--arm is one of: ${arms.map((a) => inert(a.name)).join(', ')}` },
  );
}

/** "SWE-bench_Verified_test.parquet" is the split verified; without a hint the board's own name for the whole benchmark. */
function splitOf(source: string): Split {
  const name = source.toLowerCase();
  return splits.find((s) => s !== 'test' && name.includes(s)) ?? 'test';
}

function readMetadata(path: string): SubmissionMetadata {
  if (!existsSync(path)) throw new UserError(`--metadata: there is no file ${path}`);
  let value: unknown;
  try {
    value = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UserError(`--metadata: ${path} is not YAML: ${(error as Error).message}`);
  }
  const found = parseMetadata(value);
  if (found.ok) return found.metadata;
  throw new UserError(`${path} would not be accepted:\n${found.problems.map((p) => `  ${p}`).join('\n')}`);
}

function tell(result: SubmissionResult, json: boolean): number {
  if (!result.ok) {
    say(`refused: ${result.problems.map(inert).join('\n         ')}`);
    // Incomplete work has its own exit code; everything else is for the submitter to mend.
    return result.problems.some(
      (p) => / unresolved; \d+\/\d+ predictions$/.test(p) || p.includes('without a verdict'),
    )
      ? EXIT.incomplete
      : EXIT.usage;
  }
  if (!json) printData(result.folder);
  for (const warning of result.warnings) say(`warning: ${inert(warning)}`);
  for (const answer of result.review.checklist)
    say(`[${answer.ticked ? 'x' : ' '}] ${answer.text}\n      ${inert(answer.because)}`);
  say(
    `${result.resolved}/${result.total} resolved · ${result.files} files · ${(result.bytes / 1e6).toFixed(1)} MB · hashes in ${result.manifest}`,
  );
  say('logs/ and trajs/ may be ignored by the repository: add the entry with "git add -f"');
  return EXIT.done;
}
