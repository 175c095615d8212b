/** A night's verdict: compare with the baseline, measure again what newly broke, judge, and leave the artifacts a CI wants. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { z } from 'zod';
import { dollarsToNano } from '../money.ts';
import { writeAtomically } from '../report/atomicWrite.ts';
import { candidateOf, candidateOfSide, remeasurementsOf } from '../report/candidate.ts';
import { type Comparison, compareSides } from '../report/compare.ts';
import { summaryFiles } from '../report/exportSummary.ts';
import { type GatePolicy, type GateResult, gate } from '../report/gate.ts';
import { gateDocument } from '../report/gateDocument.ts';
import { jsonText } from '../report/json.ts';
import { junitXml } from '../report/junit.ts';
import { renderMarkdown } from '../report/renderMarkdown.ts';
import type { Side } from '../report/side.ts';
import type { McNemarTest } from '../report/statistics/paired.ts';
import { summarize } from '../report/summary.ts';
import { pricesOfRun } from '../runner/tokenPrices.ts';
import { remeasurementsOfRun } from '../store/baselines.ts';
import type { Store } from '../store/open.ts';
import { CliError, env, say } from './context.ts';
import type { NamedSide } from './sides.ts';
import { sidesOfRun } from './sides.ts';

/** "2%", "2pp" or 0.02. */
const share = z
  .string()
  .transform((text, ctx) => {
    const match = /^\s*(\d*\.?\d+)\s*(%|pp)?\s*$/.exec(text);
    const value = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    ctx.addIssue({ code: 'custom', message: `"${text}" must be a share such as 2% or 0.02` });
    return z.NEVER;
  })
  .optional();

export const gateArgs = {
  minResolved: share,
  maxDrop: share,
  maxInfra: share,
  maxCost: z.number().min(0).optional(),
  maxBroken: z.number().int().min(0).optional(),
  mustPass: z.string().optional(),
  setChanges: z.enum(['allow', 'warn', 'fail']).optional(),
};
export type GateArgs = z.infer<z.ZodObject<typeof gateArgs>>;

/** Shared by `compare --gate` and `run --baseline`. */
export const gateOptions = (parser: Argv): Argv =>
  parser
    .option('min-resolved', {
      type: 'string',
      requiresArg: true,
      describe: 'least share resolved of valid (40% or 0.4)',
    })
    .option('max-drop', {
      type: 'string',
      requiresArg: true,
      describe: 'largest drop over matched instances (2% or 0.02)',
    })
    .option('max-broken', {
      type: 'number',
      requiresArg: true,
      describe: 'instances that may stay broken when measured again; default 0',
    })
    .option('must-pass', {
      type: 'string',
      requiresArg: true,
      describe: 'file with ids that must be resolved, one a line',
    })
    .option('max-infra', {
      type: 'string',
      requiresArg: true,
      describe: 'largest share of trials lost to infrastructure',
    })
    .option('max-cost', { type: 'number', requiresArg: true, describe: 'dollars the run may have cost' })
    .option('set-changes', {
      choices: ['allow', 'warn', 'fail'] as const,
      describe: 'what instances of one run only mean; default warn',
    });

export function policyOf(args: GateArgs): GatePolicy {
  return {
    minResolved: args.minResolved,
    maxDrop: args.maxDrop,
    maxInfra: args.maxInfra,
    maxBroken: args.maxBroken,
    maxCostNano: args.maxCost === undefined ? undefined : dollarsToNano(args.maxCost),
    mustPass: args.mustPass === undefined ? undefined : idsFrom(args.mustPass),
    setChanges: args.setChanges,
  };
}

function idsFrom(path: string): string[] {
  if (!existsSync(path)) throw new CliError(`--must-pass: there is no file ${path}`);
  const ids = readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .map((l) => l.replace(/#.*/, '').trim())
    .filter(Boolean);
  if (ids.length === 0) throw new CliError(`--must-pass: ${path} names no instance`);
  return ids;
}

export interface GateRequest {
  readonly a: NamedSide;
  readonly b: NamedSide;
  readonly policy: GatePolicy;
  readonly test: McNemarTest;
  readonly seed: number;
  /** Called with ids that newly broke and were not measured again yet; measures them and resolves when that is recorded. */
  readonly remeasure?: (ids: readonly string[]) => Promise<void>;
  /** Needed to find re-measurements of `b`. */
  readonly store?: Store;
}

export async function runGate(request: GateRequest): Promise<{ comparison: Comparison; result: GateResult }> {
  const { a, b, policy, store, test, seed } = request;
  const comparison = compareSides(a.side, b.side, { test, seed });
  const known = again(b, store);
  const open = comparison.broken.filter((id) => !known.has(id));
  if (open.length > 0 && request.remeasure) {
    say(`${open.length} newly broken instance(s); measuring them again before the verdict`);
    await request.remeasure(open);
  }
  const candidate = b.from ? candidateOf(b.from.data, b.from.arm, b.side) : candidateOfSide(b.side);
  return { comparison, result: gate(comparison, candidate, policy, again(b, store)) };
}

/** Of the same arm. */
function again(b: NamedSide, store: Store | undefined): Map<string, boolean[]> {
  if (!store || !b.from) return new Map();
  const { run, arm } = b.from;
  const sides = remeasurementsOfRun(store, run.name)
    .flatMap((r) => sidesOfRun(store, r))
    .filter((s) => s.from!.arm === arm)
    .map((s): Side => s.side);
  return remeasurementsOf(sides);
}

/** The summaries, junit.xml, gate.json and gate.md; also for a failed night. Appends to a CI's step summary where there is one. */
export async function writeArtifacts(
  folder: string,
  b: NamedSide,
  comparison: Comparison,
  result: GateResult,
): Promise<string[]> {
  const document = gateDocument(result, { a: comparison.a.label, b: comparison.b.label });
  const files: [string, string][] = [
    ['gate.json', jsonText({ gate: result, comparison })],
    ['gate.md', renderMarkdown(document)],
  ];
  if (b.from) {
    const summary = summarize(b.from.data, { pricesOf: pricesOfRun(b.from.data) });
    files.push(['junit.xml', junitXml(b.from.data, result)], ...summaryFiles(summary));
  }
  for (const [name, content] of files) await writeAtomically(join(folder, name), content);
  const step = env('GITHUB_STEP_SUMMARY');
  if (step) appendFileSync(step, renderMarkdown(document));
  return files.map(([name]) => join(folder, name));
}
