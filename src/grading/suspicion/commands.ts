/** Applies the rules of commandRules.ts to what an agent ran. Pure: the same commands give the same flags. */
import { type LinearMatch, linearOf } from '../../base/regex/linearRegex.ts';
import { SUSPICION_RULES, type SuspicionRule } from './commandRules.ts';

export interface Suspicion {
  readonly rule: string;
  /** The command or the line of output that matched, cut short. */
  readonly evidence: string;
  readonly says: string;
  readonly inferred: boolean;
}

export interface AttemptSuspicion extends Suspicion {
  /** Step of the first match. */
  readonly step: number;
  /** Commands that matched. */
  readonly count: number;
}

const EVIDENCE_CHARS = 200;
/** Rules look for a line, not for a document: a 300 KB heredoc is scanned at its beginning only. */
const SCANNED_CHARS = 20_000;
const SCANNED_OUTPUT_CHARS = 4096;

/** Ends a simple command of the shell. */
const COMMAND_END = /[|;&\n]/;

/** In V8 a slice keeps the whole string alive. Evidence lives as long as the attempt, outputs must not. */
const copyOf = (text: string): string => Buffer.from(text).toString();

/** The line around a match: what a person needs to judge it. */
function lineAround(text: string, at: number, length: number): string {
  const from = text.lastIndexOf('\n', at) + 1;
  const end = text.indexOf('\n', at + length);
  const line = text.slice(from, end < 0 ? undefined : end);
  if (line.length <= EVIDENCE_CHARS) return copyOf(line.trim());
  const start = Math.max(0, Math.min(at - from - 40, line.length - EVIDENCE_CHARS));
  return copyOf(line.slice(start, start + EVIDENCE_CHARS).trim());
}

/** The first match that no exception follows before the simple command ends. */
function firstMatch(sought: RegExp, text: string, unlessFollowedBy?: RegExp): LinearMatch | null {
  const regex = linearOf(sought);
  if (!unlessFollowedBy) return regex.search(text);
  const exceptions = linearOf(unlessFollowedBy).all(text, text.length);
  let next = 0;
  for (const match of regex.all(text, text.length)) {
    const from = match.index + match.text.length;
    while (next < exceptions.length && exceptions[next]!.index < from) next++;
    const exception = exceptions[next];
    if (!exception || COMMAND_END.test(text.slice(from, exception.index))) return match;
  }
  return null;
}

/** The flags of one command and its output; at most one for each rule. */
export function scanCommand(
  command: string,
  output = '',
  rules: readonly SuspicionRule[] = SUSPICION_RULES,
): Suspicion[] {
  const texts = { command: command.slice(0, SCANNED_CHARS), output: output.slice(0, SCANNED_OUTPUT_CHARS) };
  const found = new Map<string, Suspicion>();
  for (const rule of rules) {
    if (found.has(rule.rule)) continue;
    const inCommand = rule.command && firstMatch(rule.command, texts.command, rule.unlessFollowedBy);
    const inOutput = rule.output && linearOf(rule.output).search(texts.output);
    if ((rule.command && !inCommand) || (rule.output && !inOutput) || !(inCommand || inOutput)) continue;
    const evidence = inCommand
      ? lineAround(texts.command, inCommand.index, inCommand.text.length)
      : lineAround(texts.output, inOutput!.index, inOutput!.text.length);
    found.set(rule.rule, { rule: rule.rule, evidence, says: rule.says, inferred: rule.inferred ?? false });
  }
  return [...found.values()];
}

export interface Scan {
  add(step: number, command: string, output: string): void;
  /** One flag a rule, with the first evidence and a count. */
  flags(): AttemptSuspicion[];
}

/** Over a whole attempt, command by command, so that no output has to be kept for it. */
export function createScan(rules: readonly SuspicionRule[] = SUSPICION_RULES): Scan {
  const flags = new Map<string, AttemptSuspicion>();
  return {
    add(step, command, output) {
      for (const hit of scanCommand(command, output, rules)) {
        const first = flags.get(hit.rule);
        flags.set(hit.rule, first ? { ...first, count: first.count + 1 } : { ...hit, step, count: 1 });
      }
    },
    flags: () => [...flags.values()],
  };
}
