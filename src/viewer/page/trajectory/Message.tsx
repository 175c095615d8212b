/** One message with its facts (who, which step, what it cost, how its commands ended) and its body: thoughts as text, actions as code,
 * observations as a terminal would show them. */
import { memo, useMemo } from 'preact/compat';
import type { MessageChunk, MessageDocument, OutlineRow } from '../../documents/attemptDocuments.ts';
import { MESSAGES_PER_CHUNK } from '../../documents/documents.ts';
import { failureOf } from '../../steps/alignedAttempts.ts';
import { parts } from '../../steps/stepFacts.ts';
import { useDocument } from '../data/source.ts';
import { Foldout } from '../parts.tsx';
import { href, useRoute } from '../route.ts';
import { countIn, outputIn, plain } from '../text/foreignText.ts';
import { Markdown } from '../text/Markdown.tsx';
import { duration, integer, nano, short, size } from '../text/numbers.ts';
import { Ansi, CopyButton, Output } from '../text/Text.tsx';

const ROLES = new Map([
  ['system', 'System'],
  ['user', 'Observation'],
  ['tool', 'Observation'],
  ['assistant', 'Agent'],
  ['exit', 'End'],
]);

const isTask = (row: OutlineRow): boolean => row.role === 'user' && row.step === null;
const LONG = 400;

/** A text that is the same in every trajectory stands folded, unless it is short. */
export const isFolded = (row: OutlineRow): boolean =>
  (row.role === 'system' || isTask(row)) && row.chars > LONG;

interface MessageProps {
  row: OutlineRow;
  attempt: number;
  live: boolean;
  active: boolean;
  index: number;
  count: number;
  asked: string;
  linked: boolean;
}

export function MessageItem({ row, attempt, live, active, index, count, asked, linked }: MessageProps) {
  const chunk = Math.floor(row.seq / MESSAGES_PER_CHUNK);
  const { data, error } = useDocument<MessageChunk>(`attempts/${attempt}/messages/${chunk}`, live);
  const list = useRoute().query.get('list') ?? undefined;
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
        {row.step === null ? null : linked ? (
          <a href={href(['attempt', attempt], { step: row.step, list })} title="the address of this step">
            step {row.step}
          </a>
        ) : (
          <span>step {row.step}</span>
        )}
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

const endOf = ({ timedOut, exitCode }: MessageDocument['commands'][number]): string =>
  timedOut ? 'timed out' : exitCode === null ? 'exit code not told' : `exit ${exitCode}`;

const USUAL = new Set(['stop', 'tool_calls']);

function Facts({ row }: { row: OutlineRow }) {
  const { call, execMs } = row;
  const failure = failureOf(row);
  return (
    <>
      {call ? (
        <>
          {call.latency_ms === null ? null : (
            <span title="time of the model’s answer">{duration(call.latency_ms)}</span>
          )}
          <span title="tokens of the request, and of the answer">
            {short((call.input_tokens ?? 0) + (call.cache_read_tokens ?? 0) + (call.cache_write_tokens ?? 0))}{' '}
            tokens in{call.cache_read_tokens ? ` (${short(call.cache_read_tokens)} cached)` : ''},{' '}
            {short(call.output_tokens)} out
          </span>
          <span>{nano(call.cost_nano)}</span>
          {row.tries > 1 ? <span className="badge warn">{row.tries} tries</span> : null}
          {call.finish_reason && !USUAL.has(call.finish_reason) ? (
            <span className="badge note">{plain(call.finish_reason)}</span>
          ) : null}
        </>
      ) : null}
      {execMs === null ? null : <span title="time of the commands">{duration(execMs)}</span>}
      {failure === '' ? null : <span className="badge bad">{failure}</span>}
    </>
  );
}

interface ConversationProps {
  message: MessageDocument;
  /** Shown by its first line and its size. */
  folded?: boolean;
  /** The searched text: a folded part says whether it holds it. */
  asked?: string;
}

export const Conversation = memo(function Conversation({
  message,
  folded = false,
  asked = '',
}: ConversationProps) {
  const { role, content, reasoning, toolCalls } = message;
  const isAnswer = role === 'assistant';
  const body = useMemo(() => (isAnswer ? parts(content) : []), [isAnswer, content]);
  const fold = (title: string, text: string) => (
    <Foldout title={`${title}${size(text.length)}${inside(text, asked)}`}>
      {() => <Markdown text={text} />}
    </Foldout>
  );
  return (
    <div className="body">
      {reasoning ? fold('reasoning, ', reasoning) : null}
      {body.map((part, i) =>
        part.kind === 'code' ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of one immutable message
          <Code key={i} text={part.text} asked={asked} />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of one immutable message
          <Markdown key={i} text={part.text.trim()} />
        ),
      )}
      {toolCalls.map((call, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: calls of one immutable message
        <Code key={i} text={call.text} name={call.name} asked={asked} />
      ))}
      {isAnswer ? null : folded ? (
        fold(`${plain(content.trimStart().split('\n', 1)[0]!.slice(0, 110))} … `, content)
      ) : (
        <Observation message={message} asked={asked} />
      )}
    </div>
  );
});

function inside(text: string, asked: string): string {
  const word = asked.trim().toLowerCase();
  const n = word.length > 1 ? countIn(text.toLowerCase(), word) : 0;
  return n > 0 ? `, ${integer(n)} found inside` : '';
}

function Code({ text, name, asked }: { text: string; name?: string; asked: string }) {
  return (
    <div className="action">
      <CopyButton text={text} what="the command" />
      {name && name !== 'bash' ? <span className="quiet">{plain(name)}</span> : null}
      <Output text={text} label="the action" asked={asked} />
    </div>
  );
}

function Observation({ message, asked }: { message: MessageDocument; asked: string }) {
  const { commands, content } = message;
  const shown = commands.length === 0 ? outputIn(content) : undefined;
  if (commands.length === 0 && shown === undefined)
    return <Output text={content} label="the message" asked={asked} />;
  return (
    <>
      {shown === undefined ? null : shown === '' ? (
        <p className="quiet">no output</p>
      ) : (
        <Output text={shown} label="output" asked={asked} />
      )}
      {commands.map((command, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: commands of one immutable message
        <div key={i}>
          <p className="quiet command">
            <code title={plain(command.command)}>
              $ <Ansi text={command.command.split('\n')[0]!.slice(0, 200)} />
            </code>{' '}
            {endOf(command)}, {duration(command.durationMs)}
            {command.omittedBytes > 0
              ? `, ${integer(command.omittedBytes)} of ${integer(command.totalBytes)} bytes left out`
              : ''}
            {command.oomKilled ? ', killed for memory' : ''}
          </p>
          <Output
            text={command.output ?? content.slice(...(command.at ?? [0, 0]))}
            label="output"
            asked={asked}
          />
        </div>
      ))}
      <Foldout title={`as the model saw it, ${size(content.length)}`}>
        {() => <Output text={content} label="the message" />}
      </Foldout>
    </>
  );
}
