/** Access to the Hugging Face hub: endpoint, token, cache and offline mode, from the variables of its own tools. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripChars } from '../../base/python/text.ts';
import { type HubEnv, hubCacheDir, hubHome } from '../read/locate.ts';

export interface HubAccess {
  readonly cacheDir: string;
  /** Undefined: the client's own default. */
  readonly hubUrl: string | undefined;
  readonly token: string | undefined;
  readonly offline: boolean;
}

/** `huggingface-cli login` leaves the token in a file of its home, even when the cache is elsewhere. */
function storedToken(env: HubEnv): string | undefined {
  const path = env.HF_TOKEN_PATH || join(hubHome(env), 'token');
  return existsSync(path) ? readFileSync(path, 'utf8').trim() || undefined : undefined;
}

export function hubAccess(env: HubEnv): HubAccess {
  const cacheDir = hubCacheDir(env);
  return {
    cacheDir,
    hubUrl: stripChars(env.HF_ENDPOINT ?? '', '/', 'right') || undefined,
    // A line end from a file makes no header. The second name is that of older tools.
    token: env.HF_TOKEN?.trim() || env.HUGGING_FACE_HUB_TOKEN?.trim() || storedToken(env),
    offline: /^(1|true|yes|on)$/i.test(env.HF_HUB_OFFLINE ?? ''),
  };
}
