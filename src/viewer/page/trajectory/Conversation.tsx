/** The body of one message: thoughts as text, actions as code, observations as a terminal would show them. */
import { memo, useMemo } from 'react';
import type { MessageDocument } from '../../documents/documents.ts';
import { Foldout } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { duration, integer } from '../text/numbers.ts';
import { Ansi, Output } from '../text/Text.tsx';
import { parts } from './replyParts.ts';

export const Conversation = memo(function Conversation({ message }: { message: MessageDocument }) {
  const body = useMemo(() => (message.role === 'assistant' ? parts(message.content) : []), [message]);
  return (
    <div className="body">
      {message.reasoning ? (
        <Foldout title="reasoning">
          {() => <pre className="prose">{plain(message.reasoning ?? '')}</pre>}
        </Foldout>
      ) : null}
      {message.role === 'assistant'
        ? body.map((part, i) =>
            part.kind === 'code' ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: parts of one immutable message
              <Code key={i} text={part.text} />
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
        <Code key={i} text={call.text} name={call.name} />
      ))}
      {message.role === 'assistant' ? null : <Observation message={message} />}
    </div>
  );
});

function Code({ text, name }: { text: string; name?: string }) {
  return (
    <div className="action">
      {name ? <span className="quiet">{plain(name)}</span> : null}
      <Output text={text} label="the action" />
    </div>
  );
}

function Observation({ message }: { message: MessageDocument }) {
  const { commands, content, role } = message;
  if (commands.length === 0)
    return role === 'system' && content.length > 600 ? (
      <Foldout title={`${plain(content.slice(0, 120))}…`}>
        {() => <pre className="prose">{plain(content)}</pre>}
      </Foldout>
    ) : (
      <Output text={content} label="the message" />
    );
  return (
    <>
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
          <Output text={command.output ?? content.slice(...(command.at ?? [0, 0]))} label="output" />
        </div>
      ))}
      <Foldout title="as the model saw it">{() => <Output text={content} label="the message" />}</Foldout>
    </>
  );
}
