/** Messages at a cloud: the model stands in the path, and the body names a version instead. */
import type { Dialect } from '../dialects/dialect.ts';
import { extraHeaders } from '../dialects/kwargs.ts';
import { createMessagesWriter, messagesParameters } from '../dialects/messages/messagesDialect.ts';
import type { ModelConfig } from '../modelConfig.ts';

interface Place {
  readonly version: string;
  readonly path: (model: string, stream: boolean) => string;
  /** Whether the body says `stream` beside the path. */
  readonly streamInBody: boolean;
}

export function claudeAt(dialect: Dialect, { version, path, streamInBody }: Place): Dialect {
  const inBody = (config: ModelConfig): ModelConfig => (streamInBody ? config : { ...config, stream: false });
  return {
    ...dialect,
    target: (config, model) => ({
      path: path(model, config.stream),
      headers: { accept: 'application/json', ...extraHeaders(config.model_kwargs) },
    }),
    parameters: (config, tools) => messagesParameters(inBody(config), tools),
    createWriter: (config, model, style) =>
      createMessagesWriter(inBody(config), model, style, { anthropic_version: version }),
  };
}
