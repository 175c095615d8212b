/** The messages as they are stored, a chunk at a time, and all of them as one file. */
import { useState } from 'react';
import type { AttemptDocument, RawChunk } from '../../documents/documents.ts';
import { mode, readDocument, useDocument } from '../data/source.ts';
import { save, Waiting } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';

export function RawPanel({ doc }: { doc: AttemptDocument }) {
  const [chunk, setChunk] = useState(0);
  const [problem, setProblem] = useState('');
  const entry = useDocument<RawChunk>(
    `attempts/${doc.attempt.id}/raw/${chunk}`,
    doc.attempt.state === 'running',
  );
  const all = async () => {
    const messages: unknown[] = [];
    for (let i = 0; i < doc.chunks; i += 1) {
      const part = await readDocument<RawChunk>(`attempts/${doc.attempt.id}/raw/${i}`);
      messages.push(...part.messages.map((message) => parse(message.data)));
    }
    save(`${doc.instance.instanceId}.messages.json`, 'application/json', JSON.stringify(messages, null, 2));
  };
  if (mode === 'single')
    return <p className="pad quiet">Raw messages are left out of a single file; swebatch view has them.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is scrolled by keys too
    <section className="scroll pad" aria-label="Raw messages" tabIndex={0}>
      <div className="bar">
        <button type="button" disabled={chunk === 0} onClick={() => setChunk(chunk - 1)}>
          earlier
        </button>
        <span role="status">
          part {chunk + 1} of {Math.max(1, doc.chunks)}
        </span>
        <button type="button" disabled={chunk + 1 >= doc.chunks} onClick={() => setChunk(chunk + 1)}>
          later
        </button>
        <button type="button" onClick={() => void all().catch((error: unknown) => setProblem(String(error)))}>
          save all
        </button>
        <span role="alert">{problem}</span>
      </div>
      {entry.data ? (
        entry.data.messages.map((message) => (
          <details key={message.seq} open={entry.data!.messages.length < 5}>
            <summary>
              {message.seq} {plain(message.data.slice(0, 100))}
            </summary>
            <pre className="output">{plain(JSON.stringify(parse(message.data), null, 2))}</pre>
          </details>
        ))
      ) : (
        <Waiting entry={entry} />
      )}
    </section>
  );
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data) as unknown;
  } catch {
    return data;
  }
}
