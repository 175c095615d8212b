/** Above a trajectory: its size, the search, the way to the next failure, and whether the newest message is followed. */
import type { OutlineRow } from '../../documents/documents.ts';
import { integer } from '../text/numbers.ts';
import { isFailure } from './isFailure.ts';
import type { Found } from './trajectorySearch.ts';

interface BarProps {
  readonly outline: readonly OutlineRow[];
  readonly search: Found & { asked: string; ask: (word: string) => void };
  readonly tail: { follows: boolean; follow: (on: boolean) => void } | undefined;
  readonly show: (index: number) => void;
  readonly seek: (by: number) => void;
}

export function ReadingBar({ outline, search, tail, show, seek }: BarProps) {
  const failures = outline.filter(isFailure).length;
  const { asked, ask, hits, isReading } = search;
  const what = asked.trim().length > 1 ? 'match' : 'failure';
  const none = what === 'match' ? hits.size === 0 : failures === 0;
  const matches = [...hits.values()].reduce((sum, n) => sum + n, 0);
  return (
    <div className="bar readingbar noprint">
      <input
        type="search"
        aria-label="Search this trajectory"
        placeholder="search all messages"
        value={asked}
        spellCheck={false}
        onChange={(event) => ask(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') seek(event.shiftKey ? -1 : 1);
        }}
      />
      <span className="quiet" role="status">
        {what === 'match'
          ? isReading
            ? 'reading …'
            : `${integer(matches)} found in ${integer(hits.size)} messages`
          : `${integer(outline.length)} messages, ${failures} failed ${failures === 1 ? 'command' : 'commands'}`}
      </span>
      <button type="button" disabled={none} onClick={() => seek(-1)}>
        previous {what}
      </button>
      <button type="button" disabled={none} onClick={() => seek(1)}>
        next {what}
      </button>
      <label>
        step{' '}
        <input
          type="number"
          min={1}
          aria-label="go to step"
          onChange={(event) => {
            const at = Number(event.target.value);
            const index = outline.findIndex((row) => row.step === at && row.role === 'assistant');
            if (index >= 0) show(index);
          }}
        />
      </label>
      {tail ? (
        <label>
          <input
            type="checkbox"
            checked={tail.follows}
            onChange={(event) => tail.follow(event.target.checked)}
          />{' '}
          follow the newest
        </label>
      ) : null}
    </div>
  );
}
