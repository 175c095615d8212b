/** The verdict of a gate as blocks: the broken ids first, because they are what somebody must look at. */

import { compact } from '../../base/compact.ts';
import { percent } from '../../base/text/numbers.ts';
import type { InstanceHistory } from '../measure/history.ts';
import { block, type Document } from '../render/document.ts';
import { pValue, reward, signedReward } from '../render/format.ts';
import type { GateResult } from './gate.ts';

/** `labels.a` is null where there is no baseline. `past`: what the instances that changed did in the runs before. `passedOver`: nights that could have been the reference and are not. */
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
    block.heading(
      1,
      `${result.passed ? 'PASSED' : 'FAILED'}: ${result.verdict} (${labels.b} ${labels.a === null ? 'without a baseline' : `against ${labels.a}`})`,
    ),
    block.text(result.line),
    passedOver.length > 0 &&
      block.warning(
        `${passedOver.length} newer ${passedOver.length === 1 ? 'night is' : 'nights are'} no baseline: ${passedOver.map(({ run, why }) => `${run} (${why})`).join('; ')}`,
      ),
    ...result.warnings.map(block.warning),
    block.facts(result.rules.map((r) => [`${r.passed ? 'ok  ' : 'FAIL'} ${r.rule}`, r.text])),
    ...result.rules
      .filter((r) => !r.passed && r.ids.length > 0 && r.rule !== 'broken')
      .map((r) => block.ids(r.rule, r.ids)),
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
        `Drop ${percent(result.drop)} over ${result.matched} matched instances; ${result.test} ${pValue(result.p)}${result.detectable === null ? '' : `; smaller than ${percent(result.detectable)} cannot be seen here`}.`,
      ),
    result.reward !== undefined &&
      block.text(
        `Mean reward ${reward(result.reward.a.mean)} before, ${reward(result.reward.b.mean)} now: ${signedReward(result.reward.difference)}; ${result.reward.permutation ? `sign-flip permutation ${pValue(result.reward.permutation.p)}` : 'fewer than six instances differ: no test'}.`,
      ),
  ]);
}
