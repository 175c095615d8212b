/** Buttons that change a run while it works. Each shows what the run answered. */
import { useState } from 'react';
import type { RunDocument } from '../../documents/documents.ts';
import { plain } from '../text/foreignText.ts';

export function Controls({ run: { summary, slots } }: { run: RunDocument }) {
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const [workers, setWorkers] = useState('');
  const [budget, setBudget] = useState('');
  const trials = slots.map((slot) => ({ value: String(slot.trial), text: slot.instanceId }));
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
      <Choice
        name="Trial"
        hint="a trial that runs"
        options={trials}
        button="Cancel trial"
        busy={busy}
        onPress={(value) => ask('cancel', value)}
      />
      <output>{plain(said)}</output>
    </section>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly hint: string;
  readonly options: readonly { readonly value: string; readonly text: string }[];
  readonly button: string;
  readonly busy: boolean;
  readonly onPress: (value: string) => void;
}

/** One of a list, and the button for it. */
function Choice({ name, hint, options, button, busy, onPress }: ChoiceProps) {
  const [asked, setAsked] = useState('');
  // What has ended in the meantime is chosen no longer.
  const value = options.some((option) => option.value === asked) ? asked : '';
  return (
    <>
      <select aria-label={name} value={value} onChange={(event) => setAsked(event.target.value)}>
        <option value="">{hint}</option>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {plain(option.text)}
          </option>
        ))}
      </select>
      <button type="button" disabled={busy || value === ''} onClick={() => onPress(value)}>
        {button}
      </button>
    </>
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

/** Asks something of a run that works. The server answers only this page: same origin, and a header that no form can set. */

/** Resolves to what the run answered, or to why it was not asked. */
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
