/** One message with its facts: who, which step, what it cost, how its commands ended. */
import { MESSAGES_PER_CHUNK, type MessageChunk, type OutlineRow } from '../../documents/documents.ts';
import { useDocument } from '../data/source.ts';
import { href, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { duration, nano, short } from '../text/numbers.ts';
import { Conversation } from './Conversation.tsx';

const ROLES = new Map([
  ['system', 'System'],
  ['user', 'Observation'],
  ['tool', 'Observation'],
  ['assistant', 'Agent'],
  ['exit', 'End'],
]);

const isTask = (row: OutlineRow): boolean => row.role === 'user' && row.step === null;
const LONG = 400;

/** What is the same in every trajectory stands folded, unless it is short. */
export const isFolded = (row: OutlineRow): boolean =>
  (row.role === 'system' || isTask(row)) && row.chars > LONG;

interface MessageProps {
  readonly row: OutlineRow;
  readonly attempt: number;
  readonly live: boolean;
  readonly active: boolean;
  readonly index: number;
  readonly count: number;
  readonly asked: string;
  readonly linked: boolean;
}

export function MessageItem({ row, attempt, live, active, index, count, asked, linked }: MessageProps) {
  const chunk = Math.floor(row.seq / MESSAGES_PER_CHUNK);
  const { data, error } = useDocument<MessageChunk>(`attempts/${attempt}/messages/${chunk}`, live);
  const message = data?.messages.find((one) => one.seq === row.seq);
  const role = isTask(row) ? 'Task' : (ROLES.get(row.role) ?? plain(row.role));
  return (
    <article
      className={`message ${ROLES.has(row.role) ? row.role : 'other'}${active ? ' active' : ''}`}
      aria-posinset={index + 1}
      aria-setsize={count}
      aria-label={`${role}${row.step === null ? '' : `, step ${row.step}`}`}
    >
      <header>
        <strong>{role}</strong>
        {row.step === null ? null : <StepLink attempt={attempt} step={row.step} linked={linked} />}
        {message?.taskStep === undefined ? null : (
          <span className="badge note" title="the step of the task that this belongs to">
            {plain(message.taskStep)}
          </span>
        )}
        <Facts row={row} />
        {row.at === null ? null : <time className="quiet">{row.at.slice(11, 19)}</time>}
      </header>
      {message ? (
        <Conversation message={message} folded={isFolded(row)} asked={asked} />
      ) : (
        <p className="quiet">{error ? plain(error.message) : 'loading …'}</p>
      )}
    </article>
  );
}

/** A step has an address: to send it, copy the link. */
function StepLink({ attempt, step, linked }: { attempt: number; step: number; linked: boolean }) {
  const { query } = useRoute();
  if (!linked) return <span>step {step}</span>;
  return (
    <a
      href={href(['attempt', attempt], { step, list: query.get('list') ?? undefined })}
      title="the address of this step"
    >
      step {step}
    </a>
  );
}

function Facts({ row }: { row: OutlineRow }) {
  const { call } = row;
  return (
    <>
      {call ? (
        <>
          {call.latency_ms === null ? null : (
            <span title="time of the model’s answer">{duration(call.latency_ms)}</span>
          )}
          <span title="tokens in (of them cached) → out">
            {short((call.input_tokens ?? 0) + (call.cache_read_tokens ?? 0) + (call.cache_write_tokens ?? 0))}{' '}
            ({short(call.cache_read_tokens)}) → {short(call.output_tokens)}
          </span>
          <span>{nano(call.cost_nano)}</span>
          {row.tries > 1 ? <span className="badge warn">{row.tries} tries</span> : null}
          {call.finish_reason && call.finish_reason !== 'stop' && call.finish_reason !== 'tool_calls' ? (
            <span className="badge note">{plain(call.finish_reason)}</span>
          ) : null}
        </>
      ) : null}
      {row.execMs !== null ? <span title="time of the commands">{duration(row.execMs)}</span> : null}
      {row.timedOut ? <span className="badge bad">timed out</span> : null}
      {row.exitCode !== null && row.exitCode !== 0 && !row.timedOut ? (
        <span className="badge bad">exit {row.exitCode}</span>
      ) : null}
    </>
  );
}
