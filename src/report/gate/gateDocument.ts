/** The verdict of a gate as blocks: the broken ids first, because they are what somebody must look at. Each id stands there once. */

import { compact } from '../../base/compact.ts';
import { html } from '../../base/text/inert.ts';
import { percent } from '../../base/text/numbers.ts';
import type { RunData } from '../../store/records/runData.ts';
import type { InstanceHistory } from '../measure/history.ts';
import { isGraded, type Standing, standingOf } from '../measure/score.ts';
import { block, type Document, pointsInWords, pValue, reward } from '../render/document.ts';
import type { GateResult } from './gate.ts';
import { rewardInWords } from './rules.ts';
import { verdictHeading } from './verdictWords.ts';

/**
 * `labels.a` is null where there is no baseline. `past`: what the instances that changed did in the runs before. `passedOver`: nights that could
 * have been the reference and are not.
 */
export function gateDocument(
  result: GateResult,
  labels: { a: string | null; b: string },
  past: readonly InstanceHistory[] = [],
  passedOver: readonly { readonly run: string; readonly why: string }[] = [],
): Document {
  const known = new Map(past.map((h) => [h.instanceId, h]));
  const before = (id: string): string | null => {
    const h = known.get(id);
    if (!h) return null;
    return `resolved ${h.resolved.x} of ${h.resolved.n} times before${h.label === 'flaky' ? ', flaky' : ''}`;
  };
  const failed = result.rules.filter((rule) => !rule.passed);
  const given = {
    ...{ verdict: result.verdict, exitCode: result.exitCode, baseline: labels.a },
    unconfirmed: result.unconfirmed.length,
    failed: failed.map(({ rule }) => rule),
  };
  const shown = new Set(result.broken);
  /** Ids that no list above has. */
  const others = (ids: readonly string[]): string[] => ids.filter((id) => shown.size < shown.add(id).size);
  const rocks = new Set(result.rocks);
  const failedAgain = new Set(result.confirmation?.fixed);
  const told = (id: string, ...facts: string[]) => {
    const all = compact([...facts, before(id)]);
    return all.length > 0 ? `${id} (${all.join('; ')})` : id;
  };
  return compact([
    result.broken.length > 0 &&
      block.ids(
        'Broken',
        result.broken.map((id) => told(id, ...(rocks.has(id) ? ['a rock'] : []))),
      ),
    block.heading(1, verdictHeading(given, labels.b)),
    block.text(result.line),
    passedOver.length > 0 &&
      block.warning(
        `${passedOver.length} newer ${passedOver.length === 1 ? 'night is' : 'nights are'} no baseline: ${passedOver.map(({ run, why }) => `${run} (${why})`).join('; ')}`,
      ),
    ...result.warnings.map(block.warning),
    block.facts(result.rules.map((r) => [`${r.passed ? 'ok  ' : 'FAIL'} ${r.rule}`, r.text])),
    ...failed
      .map(({ rule, ids }) => [rule, others(ids)] as const)
      .filter(([, ids]) => ids.length > 0)
      .map(([rule, ids]) => block.ids(rule, ids)),
    result.flaky.length > 0 &&
      block.ids(
        'Flaky',
        result.flaky.map((f) => told(f.instanceId, `${f.resolved} of ${f.of} when measured again`)),
      ),
    labels.a !== null &&
      block.ids(
        'Fixed',
        result.fixed.map((id) =>
          told(id, ...(failedAgain.has(id) ? ['no success when measured again'] : [])),
        ),
      ),
    result.drop !== null &&
      result.p !== null &&
      block.text(
        `${pointsInWords(-result.drop)} resolved, of ${result.matched} matched instances; ${result.test} ${pValue(result.p)}${result.detectable === null ? '' : `; smaller than ${percent(result.detectable)} cannot be seen here`}.`,
      ),
    result.reward !== undefined &&
      block.text(
        `Mean reward ${reward(result.reward.a.mean)} before, ${reward(result.reward.b.mean)} now: ${rewardInWords(result.reward)}; ${result.reward.permutation ? `sign-flip permutation ${pValue(result.reward.permutation.p)}` : 'fewer than six instances differ: no test'}.`,
      ),
  ]);
}

interface Case {
  readonly suite: string;
  readonly classname: string;
  readonly name: string;
  readonly seconds: number;
  readonly result:
    | { readonly kind: 'passed' }
    | { readonly kind: 'failure' | 'error' | 'skipped'; readonly message: string };
}

// XML 1.0 has no place for these even as references.
const xml = (text: string): string => html(text).replace(/[\ufffe\uffff]/g, '');

function render(cases: readonly Case[]): string {
  const suites = [...Map.groupBy(cases, (c) => c.suite)].map(([suite, rows]) => {
    const count = (kind: string) => rows.filter((r) => r.result.kind === kind).length;
    const time = rows.reduce((s, r) => s + r.seconds, 0).toFixed(3);
    return `  <testsuite name="${xml(suite)}" tests="${rows.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="${time}">\n${rows.map(testcase).join('')}  </testsuite>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`;
}

function testcase({ classname, name, seconds, result }: Case): string {
  const open = `    <testcase classname="${xml(classname)}" name="${xml(name)}" time="${seconds.toFixed(3)}"`;
  return result.kind === 'passed'
    ? `${open}/>\n`
    : `${open}><${result.kind} message="${xml(result.message)}"/></testcase>\n`;
}

/**
 * With a gate only what a rule of it holds against the run is a failure: instances that were unresolved before do not keep CI red, and neither
 * do broken ones that the gate let pass. `alone`: there is no baseline.
 */
export function junitXml(data: RunData, gated?: GateResult, arm?: string, alone = false): string {
  const arms = new Map(data.arms.map((a) => [a.name, isGraded(data.trials.filter((t) => t.arm === a.name))]));
  const broken = new Set(gated?.broken);
  const held = new Set(gated?.rules.flatMap((r) => (r.passed ? [] : r.ids)));
  const flaky = new Set(gated?.flaky.map((f) => f.instanceId));
  // A verdict is about one arm. Other arms may have tried the same instances.
  const judged = arm === undefined ? data.trials : data.trials.filter((t) => t.arm === arm);
  const cases = judged.map((trial): Case => {
    const standing = standingOf(trial, arms.get(trial.arm) ?? false);
    return {
      suite: data.arms.length > 1 ? `${data.run.name}/${trial.arm}` : data.run.name,
      classname: trial.repo || 'instances',
      name: trial.epoch > 1 ? `${trial.instanceId} #${trial.epoch}` : trial.instanceId,
      seconds: (trial.elapsedMs ?? 0) / 1000,
      result: gated
        ? gatedResult(standing, trial, { broken, held, flaky }, alone)
        : resultOf(
            standing,
            `${trial.exitReason ?? trial.notRunReason ?? trial.state}, ${trial.outcome ?? 'not graded'}`,
          ),
    };
  });
  return render([...cases, ...ruleCases(data.run.name, gated)]);
}

function resultOf(standing: Standing, message: string): Case['result'] {
  if (standing.valid) return standing.resolved ? { kind: 'passed' } : { kind: 'failure', message };
  const broke = standing.why === 'infra' || standing.why === 'grading_infra' || standing.why === 'config';
  return { kind: broke ? 'error' : 'skipped', message: `${standing.why}: ${message}` };
}

function gatedResult(
  standing: Standing,
  trial: RunData['trials'][number],
  { broken, held, flaky }: Record<'broken' | 'held' | 'flaky', ReadonlySet<string>>,
  alone: boolean,
): Case['result'] {
  if (broken.has(trial.instanceId)) {
    const message = `broken: resolved by the baseline, now ${trial.outcome ?? trial.exitReason}`;
    return held.has(trial.instanceId)
      ? { kind: 'failure', message }
      : { kind: 'skipped', message: `${message}; the gate let it pass` };
  }
  if (held.has(trial.instanceId) && !(standing.valid && standing.resolved))
    return { kind: 'failure', message: `not resolved, and a rule of the gate names it` };
  if (flaky.has(trial.instanceId)) return { kind: 'skipped', message: 'flaky: resolved when measured again' };
  const plain = resultOf(standing, `${trial.exitReason ?? trial.notRunReason ?? trial.state}`);
  return plain.kind === 'failure'
    ? {
        kind: 'skipped',
        message: alone
          ? 'unresolved; there is no baseline yet'
          : 'unresolved, and not by the baseline either',
      }
    : plain;
}

const ruleCases = (run: string, gated: GateResult | undefined): Case[] =>
  (gated?.rules ?? []).map((rule) => ({
    suite: `${run}: gate`,
    classname: 'gate',
    name: rule.rule,
    seconds: 0,
    result: rule.passed ? { kind: 'passed' } : { kind: 'failure', message: rule.text },
  }));
