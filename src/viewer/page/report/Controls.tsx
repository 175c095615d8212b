/** Buttons that change a run while it works. Each shows what the run answered. */
import { useState } from 'react';
import type { RunDocument } from '../../documents/documents.ts';
import { askRun } from '../data/control.ts';
import { plain } from '../text/foreignText.ts';

export function Controls({ run: { summary, slots } }: { run: RunDocument }) {
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const [workers, setWorkers] = useState('');
  const [budget, setBudget] = useState('');
  const [trial, setTrial] = useState('');
  const ask = (command: string, argument: string | null = null) => {
    setBusy(true);
    setSaid('asking …');
    void askRun(summary.name, command, argument).then((answer) => {
      setSaid(answer);
      setBusy(false);
    });
  };
  return (
    <section className="controls noprint" aria-label="Change this run">
      <button type="button" disabled={busy} onClick={() => ask('pause')}>
        Pause
      </button>
      <button type="button" disabled={busy} onClick={() => ask('resume')}>
        Go on
      </button>
      <Value name="Slots" value={workers} onChange={setWorkers} hint="slots" />
      <button type="button" disabled={busy || workers === ''} onClick={() => ask('workers', workers)}>
        Set slots
      </button>
      <Value name="Budget in dollars" value={budget} onChange={setBudget} hint="dollars" />
      <button type="button" disabled={busy || budget === ''} onClick={() => ask('budget', budget)}>
        Set budget
      </button>
      <select aria-label="Trial" value={trial} onChange={(event) => setTrial(event.target.value)}>
        <option value="">a trial that runs</option>
        {slots.map((slot) => (
          <option key={slot.attempt} value={String(slot.trial)}>
            {plain(slot.instanceId)}
          </option>
        ))}
      </select>
      <button type="button" disabled={busy || trial === ''} onClick={() => ask('cancel', trial)}>
        Cancel trial
      </button>
      <output>{plain(said)}</output>
    </section>
  );
}

function Value({
  name,
  value,
  hint,
  onChange,
}: {
  name: string;
  value: string;
  hint: string;
  onChange: (value: string) => void;
}) {
  return (
    <input
      aria-label={name}
      placeholder={hint}
      size={7}
      value={value}
      onChange={(event) => onChange(event.target.value.trim())}
    />
  );
}
