/** Which dialect a configuration means. */
import type { ModelConfig } from '../modelConfig.ts';
import { chatDialect } from './chat/chat.ts';
import type { Dialect } from './dialect.ts';

export const dialectOf = (_config: ModelConfig): Dialect => chatDialect;
