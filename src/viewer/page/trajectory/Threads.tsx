/** Which conversation of a program is shown, and what each cost. */
import type { ThreadDocument } from '../../documents/documents.ts';
import { plain } from '../text/foreignText.ts';
import { integer, nano } from '../text/numbers.ts';

export function Threads({
  threads,
  current,
  choose,
}: {
  threads: readonly ThreadDocument[];
  current: string;
  choose: (name: string) => void;
}) {
  return (
    <div className="bar">
      <label>
        conversation{' '}
        <select value={current} onChange={(event) => choose(event.target.value)}>
          {threads.map(({ name, label, calls, costNano, messages }) => (
            <option key={name} value={name} disabled={messages === 0}>
              {plain(name)}
              {label?.startsWith('subagent') ? ' (sub-agent)' : ''}: {integer(messages)} messages,{' '}
              {integer(calls)} calls, {nano(costNano)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
