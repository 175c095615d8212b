/** The mark that tells a provider to keep everything up to here in its cache. Five minutes are its own default, and not written. */
import type { ModelConfig } from '../modelConfig.ts';

export interface CacheMark {
  readonly type: 'ephemeral';
  readonly ttl?: '1h';
}

export const cacheMark = (ttl: ModelConfig['cache_ttl']): CacheMark =>
  ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' };
