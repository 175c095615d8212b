/** Which dialect a configuration means. */
import type { ModelConfig } from '../modelConfig.ts';
import { dialectNameOf } from '../names.ts';
import { chatDialect } from './chat/chatDialect.ts';
import type { Dialect, DialectName } from './dialect.ts';
import { messagesDialect } from './messages/messagesDialect.ts';

const DIALECTS: Readonly<Partial<Record<DialectName, Dialect>>> = {
  chat: chatDialect,
  messages: messagesDialect,
};

export const dialectOf = (config: Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect'>): Dialect =>
  DIALECTS[dialectNameOf(config)] ?? chatDialect;
