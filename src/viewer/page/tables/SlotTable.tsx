/** What each slot does now; the time in a phase counts on between two readings of the database. */

import { useEffect, useState } from 'react';
import type { Slot } from '../../documents/documents.ts';
import { href } from '../route.ts';
import { duration, nano } from '../text/numbers.ts';
import type { Column } from './column.ts';
import { badgeColumn, numberColumn, textColumn } from './columnKinds.tsx';
import { DataTable } from './DataTable.tsx';

function columnsAt(now: number): readonly Column<Slot>[] {
  const inPhase = (s: Slot) => (s.phaseSince === null ? null : now - Date.parse(s.phaseSince));
  const inAttempt = (s: Slot) => now - Date.parse(s.startedAt);
  return [
    textColumn('instance', 'Instance', 230, (s) => s.instanceId),
    numberColumn('slot', 'Slot', 60, (s) => s.slot),
    textColumn('arm', 'Arm', 90, (s) => s.arm),
    numberColumn('step', 'Step', 60, (s) => s.steps),
    badgeColumn('phase', 'Phase', 100, (s) => s.phase),
    numberColumn('for', 'In phase', 110, inPhase, { cell: (s) => duration(inPhase(s)) }),
    numberColumn('cost', 'Cost', 90, (s) => s.costNano, { cell: (s) => nano(s.costNano) }),
    numberColumn('time', 'Attempt', 110, inAttempt, { cell: (s) => duration(inAttempt(s)) }),
  ];
}

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
