/** What each slot does now; the time in a phase counts on between two readings of the database. */
import { useEffect, useState } from 'react';
import type { Slot } from '../../documents/documents.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { duration, nano } from '../text/numbers.ts';
import type { Column } from './column.ts';
import { DataTable } from './DataTable.tsx';

const columnsAt = (now: number): readonly Column<Slot>[] => [
  {
    id: 'instance',
    header: 'Instance',
    width: 230,
    value: (s) => s.instanceId,
    cell: (s) => plain(s.instanceId),
  },
  { id: 'slot', header: 'Slot', width: 60, numeric: true, value: (s) => s.slot },
  { id: 'arm', header: 'Arm', width: 90, value: (s) => s.arm, cell: (s) => plain(s.arm) },
  { id: 'step', header: 'Step', width: 60, numeric: true, value: (s) => s.steps },
  { id: 'phase', header: 'Phase', width: 100, value: (s) => s.phase, cell: (s) => <Badge word={s.phase} /> },
  {
    id: 'for',
    header: 'In phase',
    width: 110,
    numeric: true,
    value: (s) => (s.phaseSince === null ? null : now - Date.parse(s.phaseSince)),
    cell: (s) => (s.phaseSince === null ? '–' : duration(now - Date.parse(s.phaseSince))),
  },
  {
    id: 'cost',
    header: 'Cost',
    width: 90,
    numeric: true,
    value: (s) => s.costNano,
    cell: (s) => nano(s.costNano),
  },
  {
    id: 'time',
    header: 'Attempt',
    width: 110,
    numeric: true,
    value: (s) => now - Date.parse(s.startedAt),
    cell: (s) => duration(now - Date.parse(s.startedAt)),
  },
];

export function SlotTable({ slots }: { slots: readonly Slot[] }) {
  const [now, setNow] = useState(Date.now);
  const [sort, setSort] = useState('');
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div className="short">
      <DataTable
        label="Slots"
        rows={slots}
        columns={columnsAt(now)}
        rowId={(slot) => String(slot.attempt)}
        rowHref={(slot) => href(['attempt', slot.attempt])}
        sort={sort}
        onSort={setSort}
        empty="No slot is busy."
      />
    </div>
  );
}
