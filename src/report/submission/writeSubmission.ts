/**
 * Writes an entry for the SWE-bench leaderboard into a new folder, or refuses it with every reason at once. The files are written to a
 * folder beside the target, scanned for secrets, and renamed. So a refused entry leaves nothing that could be published.
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { compact } from '../../base/compact.ts';
import { moveIntoPlace, writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { sha256 } from '../../base/sha256.ts';
import { markdown } from '../../base/text/inert.ts';
import { PUBLISHED_SHAPES, type Redactor } from '../../base/text/redact.ts';
import { readInstanceReport } from '../../formats/harness/instanceReport.ts';
import { type TrajectoryOptions, trajectoryJson } from '../../formats/miniSweAgent/writeTrajectory.ts';
import { predsJsonl } from '../../formats/predictions.ts';
import type { Store } from '../../store/open.ts';
import {
  attemptRecord,
  type GradingBody,
  gradingBodies,
  predictionRows,
} from '../../store/records/attemptBodies.ts';
import { redoneTrials } from '../../store/records/evaluations.ts';
import type { RunData } from '../../store/records/runData.ts';
import { predictionsOf } from '../predictionsOf.ts';
import { rate } from '../render/document.ts';
import { proportion } from '../statistics/proportions.ts';
import {
  draftMetadata,
  entryName,
  type Review,
  reviewSubmission,
  SPLITS,
  type Split,
  type SubmissionMetadata,
} from './review.ts';

export interface SubmissionRequest {
  readonly store: Store;
  /** The run. */
  readonly data: RunData;
  readonly arm: string;
  /** Folder that gets evaluation/<split>/<entry>/. */
  readonly target: string;
  readonly split: Split;
  readonly system: string;
  readonly metadata: SubmissionMetadata | null;
  readonly acceptModelChange?: boolean;
  /** Shapes that look like a key, in test output for example, were looked at. Never covers this machine's own secrets. */
  readonly acceptFindings?: boolean;
  readonly redactor: Pick<Redactor, 'contains'>;
  /** logs/run_evaluation/<run>/<model> of the run's folder, for eval.sh. */
  readonly logsFolder?: string;
  readonly version?: string;
  readonly published?: TrajectoryOptions['published'];
}

export type SubmissionResult =
  | { readonly ok: false; readonly problems: readonly string[]; readonly review: Review }
  | {
      readonly ok: true;
      readonly folder: string;
      readonly manifest: string;
      readonly files: number;
      readonly bytes: number;
      readonly review: Review;
      readonly warnings: readonly string[];
      readonly resolved: number;
      readonly total: number;
    };

export async function writeSubmission(request: SubmissionRequest): Promise<SubmissionResult> {
  const { data } = request;
  const review = reviewSubmission({
    data,
    arm: request.arm,
    redone: redoneTrials(request.store, data.run.id)
      .filter((r) => r.arm === request.arm)
      .map((r) => r.instanceId),
    acceptModelChange: request.acceptModelChange ?? false,
  });
  const entry = entryName(data.run.createdAt, request.system, review.models[0] ?? 'unknown');
  const place = `${request.split}/${entry}`;
  const draft = draftMetadata({ models: review.models, attempts: review.attempts, place });
  const metadata = request.metadata ?? draft.metadata;
  const folder = pathInside(request.target, 'evaluation', request.split, entry);
  const problems = compact([...review.problems, existsSync(folder) && `${folder} exists already`]);
  if (problems.length > 0) return { ok: false, problems, review };

  const partial = pathInside(dirname(folder), `.${entry}.partial`);
  rmSync(partial, { recursive: true, force: true });
  try {
    const written = await writeFiles(request, metadata, review, partial);
    if (written.problems.length > 0) return { ok: false, problems: written.problems, review };
    await moveIntoPlace(partial, folder);
    const manifest = `${folder}.MANIFEST.sha256`;
    await writeAtomically(manifest, written.hashes.map(([path, hash]) => `${hash}  ${path}\n`).join(''));
    return {
      ok: true,
      folder,
      manifest,
      files: written.hashes.length,
      bytes: written.bytes,
      review,
      warnings: compact([
        ...review.warnings,
        !request.metadata && `metadata.yaml is a draft; fill in ${draft.toFillIn.join(', ')}`,
        review.planned !== SPLITS[request.split] &&
          `${review.planned} instances, but ${request.split} has ${SPLITS[request.split]}: the board divides by ${SPLITS[request.split]}`,
      ]),
      resolved: written.resolved,
      total: review.planned,
    };
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

async function writeFiles(
  request: SubmissionRequest,
  metadata: SubmissionMetadata,
  review: Review,
  root: string,
) {
  const { data } = request;
  const hashes: [string, string][] = [];
  const findings: ReturnType<typeof scanForSecrets> = [];
  let bytes = 0;
  const put = (path: string, content: string) => {
    findings.push(...scanForSecrets(path, content, request.redactor));
    const full = pathInside(root, path);
    makeFolder(dirname(full));
    writeFileSync(full, content);
    hashes.push([path, sha256(content)]);
    bytes += Buffer.byteLength(content);
  };
  const rows = predictionRows(request.store, data.run.id).filter(
    (r) => r.arm === request.arm && r.epoch === 1,
  );
  put('all_preds.jsonl', predsJsonl(predictionsOf(rows)));
  const trials = data.trials.filter((t) => t.arm === request.arm && t.epoch === 1);
  for (const trial of trials) {
    const attempt = trial.attemptId === null ? undefined : attemptRecord(request.store, trial.attemptId);
    if (attempt)
      put(
        `trajs/${trial.instanceId}.traj.json`,
        await trajectoryJson(attempt, {
          ...(request.version !== undefined && { version: request.version }),
          ...(request.published && { published: request.published }),
        }),
      );
  }
  const judged: Judged[] = [];
  const byId = new Map(trials.map((t) => [t.trialId, t]));
  for (const body of gradingBodies(request.store, [...byId.keys()])) {
    const trial = byId.get(body.trialId)!;
    judged.push({
      instanceId: body.instanceId,
      repo: trial.repo,
      createdAt: body.createdAt,
      modelPatch: body.modelPatch,
      report: body.report,
      hasLog: body.log !== null,
      resolved: trial.resolved === true,
    });
    putLogs(body, request.logsFolder, put);
  }
  const derived = deriveResults(judged);
  put('results/results.json', json(derived.results));
  put('results/resolved_by_repo.json', json(derived.byRepo));
  put('results/resolved_by_time.json', json(derived.byTime));
  put('metadata.yaml', stringify(metadata, { lineWidth: 0 }));
  put('README.md', submissionReadme(data, request.arm, metadata, derived, review));
  return {
    hashes,
    bytes,
    resolved: derived.results.resolved.length,
    problems: [
      ...derived.disagreements.map((id) => `${id}: its report and the database disagree; grade it again`),
      ...findings
        .filter((f) => f.exact || !request.acceptFindings)
        .map(
          (f) =>
            `${f.file}:${f.line}: ${f.kind}${f.exact ? '' : ' (look at it; --accept-findings if it is not a secret)'}`,
        ),
    ],
  };
}

/** An empty patch was never run: it has no logs, and the official script expects none. */
function putLogs(
  body: GradingBody,
  logsFolder: string | undefined,
  put: (path: string, content: string) => void,
): void {
  if (body.modelPatch === '') return;
  const at = `logs/${body.instanceId}`;
  put(`${at}/patch.diff`, body.modelPatch);
  if (body.log !== null) put(`${at}/test_output.txt`, gunzipSync(body.log).toString('utf8'));
  if (body.report !== null) put(`${at}/report.json`, body.report);
  const evalScript = logsFolder && pathInside(logsFolder, body.instanceId, 'eval.sh');
  if (evalScript && existsSync(evalScript)) put(`${at}/eval.sh`, readFileSync(evalScript, 'utf8'));
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

interface Judged {
  readonly instanceId: string;
  readonly repo: string;
  /** The date in the dataset row: the year counts. */
  readonly createdAt: string;
  readonly modelPatch: string;
  readonly report: string | null;
  readonly hasLog: boolean;
  /** The verdict of the database. */
  readonly resolved: boolean;
}

type Tally = Record<string, { resolved: number; total: number }>;

interface DerivedResults {
  readonly results: { no_generation: string[]; no_logs: string[]; resolved: string[] };
  readonly byRepo: Tally;
  readonly byTime: Tally;
  /** The places where the reports and the database disagree. */
  readonly disagreements: readonly string[];
}

export function deriveResults(rows: readonly Judged[]): DerivedResults {
  const sorted = rows.toSorted((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const resolvedOf = ({ modelPatch, report, instanceId }: Judged): boolean => {
    if (modelPatch === '' || report === null) return false;
    const read = readInstanceReport(report, instanceId);
    return read.ok && read.value.resolved;
  };
  const idsWhere = (test: (row: Judged) => boolean) => sorted.filter(test).map((r) => r.instanceId);
  const tally = (keyOf: (row: Judged) => string): Tally =>
    Object.fromEntries(
      [...Map.groupBy(sorted, keyOf)]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, group]) => [key, { resolved: group.filter(resolvedOf).length, total: group.length }]),
    );
  return {
    results: {
      no_generation: idsWhere((r) => r.modelPatch === ''),
      no_logs: idsWhere((r) => r.modelPatch !== '' && !r.hasLog),
      resolved: idsWhere(resolvedOf),
    },
    byRepo: tally((r) => r.repo),
    byTime: tally((r) => /^\d{4}/.exec(r.createdAt)?.[0] ?? 'unknown'),
    disagreements: idsWhere((r) => resolvedOf(r) !== r.resolved),
  };
}

function submissionReadme(
  data: RunData,
  arm: string,
  metadata: SubmissionMetadata,
  derived: DerivedResults,
  review: Review,
): string {
  const { results, byRepo } = derived;
  const total = Object.values(byRepo).reduce((s, r) => s + r.total, 0);
  const retried = data.trials.filter((t) => t.arm === arm && t.epoch === 1 && t.attempts > 1);
  const authors = [metadata.info.authors].flat();
  return [
    `# ${markdown(metadata.info.name)}`,
    '',
    '## Results',
    '',
    '```',
    `resolved      ${rate(proportion(results.resolved.length, total))} (Wilson 95 %)`,
    `no generation ${results.no_generation.length}`,
    `no logs       ${results.no_logs.length}`,
    ...Object.entries(byRepo).map(([repo, r]) => `  ${repo}: ${rate(proportion(r.resolved, r.total))}`),
    '```',
    '',
    '## System',
    '',
    metadata.info.report
      ? `Described in ${metadata.info.report}.`
      : 'TODO: describe the system or link its report.',
    authors.length
      ? `Authors: ${authors.map(markdown).join(', ')}.`
      : 'TODO: authors, with a page of the first.',
    '',
    '## What was pinned',
    '',
    '| | |',
    '| --- | --- |',
    ...pinsOf(data, arm, review).map(([key, value]) => `| ${key} | ${markdown(value)} |`),
    '',
    `Instances tried again: ${retried.length}${retried.length ? ` (${retried.map((t) => markdown(t.instanceId)).join(', ')}); ${review.attempts === '1' ? 'an attempt is repeated only when infrastructure failed, and all' : 'some were repeated after a result, and all'} attempts are in the record` : ''}.`,
    '',
  ].join('\n');
}

/** Versions and hashes that another run needs to be the same. */
function pinsOf(data: RunData, arm: string, review: Review): [string, string][] {
  const trials = data.trials.filter((t) => t.arm === arm && t.epoch === 1);
  const unique = (xs: readonly (string | null)[]) => [...new Set(xs.filter((x) => x !== null))];
  const { program, dataset } = data.run.manifest;
  return [
    ['swebatch', `${program?.version ?? 'unknown'}${program?.commit ? ` (${program.commit})` : ''}`],
    ['run', data.run.name],
    ['configuration', data.run.configHash],
    [
      'dataset',
      `${data.run.datasetSource}${data.run.datasetRevision ? ` @ ${data.run.datasetRevision}` : ''}`,
    ],
    ...(typeof dataset?.file_sha256 === 'string'
      ? ([['dataset file, sha256', dataset.file_sha256]] as [string, string][])
      : []),
    ['selected rows, sha256', data.run.datasetHash],
    ['models that answered', review.models.join(', ') || 'none recorded'],
    ['grading harness', unique(trials.map((t) => t.harness)).join(', ') || 'none recorded'],
    ['image digests', digestsOf(trials)],
  ];
}

/** 500 digests would bury the rest: the trajectories and run.json hold them, and their hash binds them. */
function digestsOf(trials: RunData['trials']): string {
  const known = trials.filter((t) => t.imageDigest);
  const lines = known.map((t) => `${t.instanceId} ${t.imageDigest}\n`).sort();
  return `${known.length} of ${trials.length} recorded; sha256 of the sorted lines "id digest": ${sha256(lines.join(''))}`;
}

/** `exact`: the value of a secret of this machine. No flag lets that pass. */
export function scanForSecrets(file: string, content: string, redactor: Pick<Redactor, 'contains'>) {
  const exact = redactor.contains(content);
  if (!exact && !PUBLISHED_SHAPES.some(([, shape]) => shape.test(content))) return [];
  const lines = content.split('\n');
  const secret = (line: number) => ({ file, line, kind: 'a secret of this machine', exact: true });
  const found = lines.flatMap((text, i) => [
    ...(exact && redactor.contains(text) ? [secret(i + 1)] : []),
    ...PUBLISHED_SHAPES.filter(([, shape]) => shape.test(text)).map(([kind]) => ({
      file,
      line: i + 1,
      kind: kind as string,
      exact: false,
    })),
  ]);
  // A value that spans lines is in the file and in none of its lines.
  return exact && !found.some((f) => f.exact) ? [secret(1), ...found] : found;
}
