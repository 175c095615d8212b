/** Which conversation of a program is shown, and what each cost. */
import type { ThreadDocument } from '../../documents/documents.ts';
import { plain } from '../text/foreignText.ts';
import { cost, integer } from '../text/numbers.ts';

const counted = (n: number, what: string): string => `${integer(n)} ${what}${n === 1 ? '' : 's'}`;

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
          {threads.map(({ name, label, calls, messages, ...money }) => (
            <option key={name} value={name} disabled={messages === 0}>
              {plain(name)}
              {label?.startsWith('subagent') ? ' (sub-agent)' : ''}: {counted(messages, 'message')},{' '}
              {counted(calls, 'call')}, {cost(money)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
