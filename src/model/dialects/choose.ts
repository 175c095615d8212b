/** Which dialect a configuration means. */
import { cloudOf } from '../clouds/chooseCloud.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { dialectNameOf } from '../names.ts';
import { chatDialect } from './chat/chatDialect.ts';
import type { Dialect } from './dialect.ts';
import type { DialectName } from './dialectName.ts';
import { geminiDialect } from './gemini/geminiDialect.ts';
import { messagesDialect } from './messages/messagesDialect.ts';
import { responsesDialect } from './responses/responsesDialect.ts';

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  chat: chatDialect,
  gemini: geminiDialect,
  responses: responsesDialect,
  messages: messagesDialect,
};

export const dialectNamed = (name: DialectName): Dialect => DIALECTS[name];

export function dialectOf(config: Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect'>): Dialect {
  const dialect = DIALECTS[dialectNameOf(config)];
  return cloudOf(config)?.dialect(dialect) ?? dialect;
}
