/** Why trials said nothing about the model: each exit reason once, with how often it was and what one of them said. */

import { inert } from '../../base/text/terminal.ts';
import type { Store } from '../../store/open.ts';
import { trialLines } from '../../store/records/trialResults.ts';
import { attemptById } from '../../store/records/trials.ts';

const LONGEST = 300;

export function failureLines(store: Store, runId: number): string[] {
  const failed = trialLines(store, runId).filter((line) => line.exit_class === 'infra');
  const reasons = [...Map.groupBy(failed, (line) => line.exit_reason ?? '')];
  return reasons
    .toSorted((a, b) => b[1].length - a[1].length)
    .map(([reason, lines]) => {
      const { instance_id, attempt_id } = lines[0]!;
      const message = (attempt_id === null ? null : attemptById(store, attempt_id)?.error_message) ?? '';
      const told = message.split('\n', 1)[0]!.slice(0, LONGEST);
      return `  ${reason} ${lines.length}${told ? `: ${inert(instance_id)}: ${inert(told)}` : ''}`;
    });
}
