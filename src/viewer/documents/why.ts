/** Why an attempt did not resolve its instance, for the head of its page and for `swebatch show`. */
import { settleLines, stripEscapes } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { EXIT_REASONS, type ExitReason } from '../../outcome.ts';
import { KEPT_WORK } from './keptWork.ts';

interface Ended {
  readonly state: string;
  readonly exitReason: string | null;
  readonly exitClass: string | null;
  readonly exitDetail: string | null;
  readonly error: string | null;
}

interface Verdict {
  readonly outcome: string;
  readonly resolved: number | null;
  readonly error: string | null;
  readonly infraReason: string | null;
  readonly log: string | null;
  readonly tests: readonly { readonly name: string; readonly group: string; readonly passed: boolean }[];
}

interface Touched {
  readonly file: string;
  readonly added: number;
  readonly removed: number;
}

export interface Why {
  /** In one sentence. */
  readonly says: string;
  /** FAIL_TO_PASS that do not pass, PASS_TO_PASS that pass no more. */
  readonly notPassed: readonly string[];
  readonly broken: readonly string[];
  readonly firstError: string | null;
  readonly logEnd: readonly string[];
  readonly touched: readonly Touched[];
  /** Arguments of the command that helps, and what it does. */
  readonly next: { readonly command: string; readonly does: string } | null;
}

/** Null for what is resolved, and for what still runs. */
export function whyOf(
  run: string,
  attempt: Ended,
  patch: string,
  verdict: Verdict | undefined,
  kept: string | null = null,
): Why | null {
  if (attempt.state === 'running' || verdict?.resolved === 1) return null;
  const nothing = {
    notPassed: [],
    broken: [],
    firstError: null,
    logEnd: [],
    touched: touchedBy(kept ?? patch),
  };
  const left = kept === null ? 'It left no patch.' : `It submitted no patch; its ${keptText(kept)}`;
  const reason = attempt.exitReason as ExitReason | null;
  const ended = reason && EXIT_REASONS[reason];
  const detail = attempt.exitDetail ? ` (${attempt.exitDetail})` : '';
  if (ended && (ended.class === 'infra' || ended.class === 'config' || ended.class === 'cancelled'))
    return {
      ...nothing,
      says: `It has no result: ${ended.says}${detail}.${kept === null ? '' : ` Its ${keptText(kept)}`}`,
      firstError: attempt.error,
      next: {
        command: `resume ${run}${ended.class === 'infra' ? ' --retry infra' : ''}`,
        does: ended.retry
          ? 'tries it again'
          : ended.class === 'config'
            ? 'helps after the cause is mended: it would end in the same way'
            : 'would most likely end in the same way',
      },
    };
  const how = ended && ended.class !== 'agent' ? ` Before that, ${ended.says}${detail}.` : '';
  if (!verdict)
    return {
      ...nothing,
      says: patch === '' ? `${left}${how}` : `It has no verdict yet.${how}`,
      next: patch === '' ? null : { command: `evaluate ${run}`, does: 'grades it' },
    };
  const failed = (group: string) =>
    verdict.tests.filter((test) => test.group === group && !test.passed).map((test) => test.name);
  const output = testOutput(verdict.log ?? '');
  const infra = verdict.outcome === 'infra';
  return {
    ...nothing,
    says: `${verdict.outcome === 'empty_patch' ? left : (SAYS[verdict.outcome] ?? `The grader says: ${verdict.outcome}.`)}${how}`,
    notPassed: failed('FAIL_TO_PASS'),
    broken: failed('PASS_TO_PASS'),
    firstError: firstErrorIn(output) ?? verdict.error ?? verdict.infraReason,
    logEnd: output.slice(-LAST_LINES),
    next: infra ? { command: `evaluate ${run}`, does: 'grades it again' } : null,
  };
}

const keptText = (kept: string): string =>
  `work (${plural(Buffer.byteLength(kept), 'byte')}) was ${KEPT_WORK}.`;

const SAYS: Readonly<Record<string, string>> = {
  unresolved: 'The patch was tested and does not resolve the instance.',
  apply_failed: 'Its patch does not apply.',
  timeout: 'Its tests did not end in time.',
  infra: 'The grading failed, not the patch.',
  ungradable: 'No verdict is possible: the instance cannot be graded here.',
  invalid: 'What the grader saw allows no verdict.',
};

const LAST_LINES = 15;
const LONGEST_LINE = 400;
const BEGINS = '>>>>> Start Test Output';
const ENDS = '>>>>> End Test Output';

/** Lines with something in them, of the tests alone where the log says where they are. */
function testOutput(log: string): string[] {
  const from = log.lastIndexOf(BEGINS);
  const to = from < 0 ? -1 : log.indexOf(ENDS, from);
  const own = log.slice(from < 0 ? 0 : from + BEGINS.length, to < 0 ? undefined : to);
  return settleLines(stripEscapes(own))
    .split('\n')
    .map((line) => line.trimEnd().slice(0, LONGEST_LINE))
    .filter((line) => line !== '' && line !== "'" && !line.startsWith("+ : '"));
}

/** As pytest marks it; else a named error; else the first line that says "failed". */
const ERRORS = [
  /^E {2,}\S/,
  /^\s*(?:[A-Za-z_][\w.]{0,80})?(?:Error|Exception|Failure)\b(?:: .*|$)/,
  /\berror: |\bpanicked at\b|^not ok\b|--- FAIL|\bFAILED\b|\bFAIL\b/,
];

function firstErrorIn(lines: readonly string[]): string | null {
  for (const pattern of ERRORS) {
    const found = lines.find((line) => pattern.test(line));
    if (found !== undefined) return found.trim();
  }
  return null;
}

function touchedBy(patch: string): Touched[] {
  const files: { file: string; added: number; removed: number }[] = [];
  let inHunk = false;
  for (const line of patch.split('\n')) {
    if (line.startsWith('diff --git ')) {
      inHunk = false;
      files.push({ file: line.slice(line.lastIndexOf(' b/') + 3), added: 0, removed: 0 });
    } else if (line.startsWith('@@')) inHunk = true;
    const file = files.at(-1);
    if (!file || !inHunk) continue;
    if (line.startsWith('+')) file.added += 1;
    else if (line.startsWith('-')) file.removed += 1;
  }
  return files;
}
