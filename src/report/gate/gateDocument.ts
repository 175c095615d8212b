/** The verdict of a gate as blocks: the broken ids first, because they are what somebody must look at. */

import type { InstanceHistory } from '../measure/history.ts';
import type { Document } from '../render/document.ts';
import { percent, pValue } from '../render/format.ts';
import type { GateResult } from './gate.ts';

/** `past`: how what changed did in the runs before. */
export function gateDocument(
  result: GateResult,
  labels: { a: string; b: string },
  past: readonly InstanceHistory[] = [],
): Document {
  const known = new Map(past.map((h) => [h.instanceId, h]));
  const before = (id: string): string => {
    const h = known.get(id);
    return h
      ? `resolved ${h.resolved.x} of ${h.resolved.n} times before${h.label === 'flaky' ? ', flaky' : ''}`
      : '';
  };
  const told = (id: string) => (known.has(id) ? `${id} (${before(id)})` : id);
  return [
    ...(result.broken.length
      ? [{ kind: 'ids', label: 'Broken', ids: result.broken.map(told) } as const]
      : []),
    {
      kind: 'heading',
      level: 1,
      text: `${result.passed ? 'PASSED' : 'FAILED'}: ${result.verdict} (${labels.b} against ${labels.a})`,
    },
    { kind: 'text', text: result.line },
    ...result.warnings.map((text) => ({ kind: 'warning', text }) as const),
    {
      kind: 'facts',
      rows: result.rules.map((r) => [`${r.passed ? 'ok  ' : 'FAIL'} ${r.rule}`, r.text] as const),
    },
    ...result.rules
      .filter((r) => !r.passed && r.ids.length > 0 && r.rule !== 'broken')
      .map((r) => ({ kind: 'ids', label: r.rule, ids: r.ids }) as const),
    ...(result.flaky.length
      ? [
          {
            kind: 'ids',
            label: 'Flaky',
            ids: result.flaky.map(
              (f) =>
                `${f.instanceId} (${[`${f.resolved} of ${f.of} when measured again`, before(f.instanceId)].filter(Boolean).join('; ')})`,
            ),
          } as const,
        ]
      : []),
    { kind: 'ids', label: 'Fixed', ids: result.fixed.map(told) },
    ...(result.drop === null || result.p === null
      ? []
      : [
          {
            kind: 'text',
            text: `Drop ${percent(result.drop)} over ${result.matched} matched instances; ${result.test} ${pValue(result.p)}${result.detectable === null ? '' : `; smaller than ${percent(result.detectable)} cannot be seen here`}.`,
          } as const,
        ]),
  ];
}
