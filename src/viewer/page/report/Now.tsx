/** A run that works: how fast, what each slot does now, and the buttons that change it. */
import { useEffect, useState } from 'preact/compat';
import type { RunDocument } from '../../documents/resources.ts';
import { mode } from '../data/source.ts';
import { href } from '../route.ts';
import { badgeColumn, type Column, numberColumn, textColumn } from '../tables/columns.tsx';
import { DataTable } from '../tables/DataTable.tsx';
import { plain } from '../text/foreignText.ts';
import { duration, nano, words } from '../text/numbers.ts';

type Live = NonNullable<RunDocument['now']>;
type Slot = Live['slots'][number];

export function Now({ run, live }: { run: string; live: Live }) {
  const phases = Map.groupBy(live.slots, (slot) => slot.phase ?? 'starting');
  return (
    <>
      <h2>Now</h2>
      <p role="status">
        {live.slots.length} slots busy
        {[...phases].map(([phase, slots]) => ` · ${words(phase)} ${slots.length}`).join('')}
        {` · ${paceText(live)}`}
      </p>
      {mode === 'served' ? <Controls run={run} slots={live.slots} /> : null}
      <SlotTable slots={live.slots} />
    </>
  );
}

/** "12.0 trials/h · $3.00/h · 1 h 5 min to 2 h left" */
function paceText({ pace, remaining }: Live): string {
  const left = remaining ? ` · ${duration(remaining.low)} to ${duration(remaining.high)} left` : '';
  if (!pace) return `no rate yet${left}`;
  return `${pace.perHour.toFixed(1)} trials/h · ${nano(pace.nanoPerHour)}/h${left}`;
}

/** Each button shows what the run answered. */
function Controls({ run, slots }: { run: string; slots: readonly Slot[] }) {
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const [workers, setWorkers] = useState('');
  const [budget, setBudget] = useState('');
  const [asked, setAsked] = useState('');
  // A trial that has ended in the meantime is chosen no longer.
  const trial = slots.some((slot) => String(slot.trial) === asked) ? asked : '';
  const ask = async (command: string, argument: string | null) => {
    setBusy(true);
    setSaid('asking …');
    setSaid(await askRun(run, command, argument));
    setBusy(false);
  };
  const button = (label: string, command: string, argument: string | null = null) => (
    <button type="button" disabled={busy || argument === ''} onClick={() => void ask(command, argument)}>
      {label}
    </button>
  );
  const box = (name: string, hint: string, value: string, change: (value: string) => void) => (
    <input
      aria-label={name}
      placeholder={hint}
      size={7}
      value={value}
      onChange={(event) => change(event.currentTarget.value.trim())}
    />
  );
  return (
    <section className="controls noprint" aria-label="Change this run">
      {button('Pause', 'pause')}
      {button('Go on', 'resume')}
      {box('Slots', 'slots', workers, setWorkers)}
      {button('Set slots', 'workers', workers)}
      {box('Budget in dollars', 'dollars', budget, setBudget)}
      {button('Set budget', 'budget', budget)}
      <select aria-label="Trial" value={trial} onChange={(event) => setAsked(event.currentTarget.value)}>
        <option value="">a trial that runs</option>
        {slots.map((slot) => (
          <option key={slot.trial} value={slot.trial}>
            {plain(slot.instanceId)}
          </option>
        ))}
      </select>
      {button('Cancel trial', 'cancel', trial)}
      <output>{plain(said)}</output>
    </section>
  );
}

/**
 * Resolves to what the run answered, or to why it was not asked. The server answers only this page: same origin, and a header that no
 * form can set.
 */
async function askRun(run: string, command: string, argument: string | null): Promise<string> {
  try {
    const response = await fetch('api/control', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'Content-Type': 'application/json', 'X-Swebatch-Control': '1' },
      body: JSON.stringify({ run, command, argument }),
    });
    const body = await response.text();
    if (!response.headers.get('content-type')?.startsWith('application/json')) return body.trim();
    const { answer, error } = JSON.parse(body) as { answer?: string; error?: string };
    return answer ?? error ?? '';
  } catch (error) {
    return `the viewer does not answer: ${String(error)}`;
  }
}

function columnsAt(now: number): readonly Column<Slot>[] {
  const inPhase = (s: Slot) => (s.phaseSince === null ? null : now - s.phaseSince);
  const inAttempt = (s: Slot) => now - s.startedAt;
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

/** The time in a phase counts on between two readings of the database. */
function SlotTable({ slots }: { slots: readonly Slot[] }) {
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
