/** Two attempts next to each other, their steps moved together. */
import { useState } from 'preact/compat';
import type { AttemptDocument } from '../../documents/attemptDocuments.ts';
import { useDocument } from '../data/source.ts';
import { Tabs, Up, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { PatchOf } from '../trajectory/PatchPanel.tsx';
import { Trajectory } from '../trajectory/Trajectory.tsx';
import { Head } from './Attempt.tsx';

const TABS: readonly [string, string][] = [
  ['trajectory', 'Trajectories'],
  ['patch', 'Patches'],
];

export function SidePage() {
  const { query } = useRoute();
  const tab = query.get('tab') === 'patch' ? 'patch' : 'trajectory';
  const [step, setStep] = useState(Number(query.get('step')) || 1);
  const move = (to: number) => {
    const next = Math.max(1, to);
    setStep(next);
    setQuery({ step: String(next) });
  };
  return (
    <section className="page">
      <Up to={href(['compare'])}>Compare</Up>
      <h1 className="hide">Two attempts side by side</h1>
      <div className="bar">
        <Tabs tabs={TABS} current={tab} onChange={(next) => setQuery({ tab: next })} />
        {tab === 'trajectory' ? (
          <>
            <button type="button" onClick={() => move(step - 1)}>
              both one step back
            </button>
            <span role="status">step {step}</span>
            <button type="button" onClick={() => move(step + 1)}>
              both one step on
            </button>
          </>
        ) : null}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby={`tab-${tab}`} className="sides">
        {[query.get('a'), query.get('b')].map((id, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: there are always two sides
          <Half key={i} id={id} step={step} tab={tab} />
        ))}
      </div>
    </section>
  );
}

function Half({ id, step, tab }: { id: string | null; step: number; tab: string }) {
  const entry = useDocument<AttemptDocument>(id === null ? undefined : `attempts/${id}`);
  if (id === null) return <p className="pad quiet">This side has no attempt.</p>;
  if (!entry.data) return <Waiting entry={entry} />;
  return (
    <div className="half">
      <Head doc={entry.data} />
      {tab === 'trajectory' ? (
        <Trajectory doc={entry.data} step={step} linked={false} />
      ) : (
        <div className="scroll">
          <PatchOf doc={entry.data} label="patch" />
        </div>
      )}
    </div>
  );
}
