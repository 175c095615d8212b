/** The body of one message: thoughts as text, actions as code, observations as a terminal would show them. */
import { memo, useMemo } from 'react';
import type { MessageDocument } from '../../documents/documents.ts';
import { parts } from '../../steps/stepFacts.ts';
import { Foldout } from '../parts.tsx';
import { Ansi } from '../text/Ansi.tsx';
import { countIn } from '../text/countIn.ts';
import { plain } from '../text/foreignText.ts';
import { duration, integer, size } from '../text/numbers.ts';
import { CopyButton, Output } from '../text/Text.tsx';
import { outputIn } from './observedOutput.ts';

interface ConversationProps {
  readonly message: MessageDocument;
  /** Shown by its first line and its size. */
  readonly folded?: boolean;
  /** What is searched: what is folded says whether it holds it. */
  readonly asked?: string;
}

export const Conversation = memo(function Conversation({
  message,
  folded = false,
  asked = '',
}: ConversationProps) {
  const body = useMemo(() => (message.role === 'assistant' ? parts(message.content) : []), [message]);
  return (
    <div className="body">
      {message.reasoning ? (
        <Foldout title={`reasoning, ${size(message.reasoning.length)}${inside(message.reasoning, asked)}`}>
          {() => <pre className="prose">{plain(message.reasoning ?? '')}</pre>}
        </Foldout>
      ) : null}
      {message.role === 'assistant'
        ? body.map((part, i) =>
            part.kind === 'code' ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: parts of one immutable message
              <Code key={i} text={part.text} asked={asked} />
            ) : (
              // biome-ignore lint/suspicious/noArrayIndexKey: parts of one immutable message
              <pre key={i} className="prose">
                {plain(part.text.trim())}
              </pre>
            ),
          )
        : null}
      {message.toolCalls.map((call, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: calls of one immutable message
        <Code key={i} text={call.text} name={call.name} asked={asked} />
      ))}
      {message.role === 'assistant' ? null : folded ? (
        <Folded content={message.content} asked={asked} />
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

function Folded({ content, asked }: { content: string; asked: string }) {
  const first = content.trimStart().split('\n', 1)[0]!.slice(0, 110);
  return (
    <Foldout title={`${plain(first)} … ${size(content.length)}${inside(content, asked)}`}>
      {() => <pre className="prose">{plain(content)}</pre>}
    </Foldout>
  );
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
            exit {command.exitCode}, {duration(command.durationMs)}
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
