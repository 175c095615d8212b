/** exit_statuses.yaml: mini-swe-agent's map from exit status to ids, and beside it our own exit classes and reasons. */
import { stringify } from 'yaml';
import type { ExitClass, ExitReason } from '../../outcome.ts';

export interface EndedTrial {
  readonly instanceId: string;
  readonly exitStatus: string | null;
  readonly exitReason: ExitReason | null;
  readonly exitClass: ExitClass | null;
}

export function exitStatusesYaml(rows: readonly EndedTrial[]): string {
  const ended = rows.filter((row) => row.exitReason !== null && row.exitClass !== null);
  const idsBy = (part: readonly EndedTrial[], keyOf: (row: EndedTrial) => string) =>
    sorted(Map.groupBy(part, keyOf), (group) => group.map((row) => row.instanceId));
  const byClass = sorted(
    Map.groupBy(ended, (row) => String(row.exitClass)),
    (group) => idsBy(group, (row) => String(row.exitReason)),
  );
  return stringify(
    {
      instances_by_exit_status: idsBy(ended, (row) => row.exitStatus ?? String(row.exitReason)),
      instances_by_exit_class: byClass,
    },
    { indentSeq: false, lineWidth: 0 },
  );
}

const sorted = <T, U>(groups: Map<string, T>, to: (group: T) => U): Map<string, U> =>
  new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, group]) => [key, to(group)]));
