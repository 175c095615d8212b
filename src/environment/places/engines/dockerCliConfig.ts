/** The docker CLI's own `config.json`: its current context, and the logins and credential helpers that it keeps. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { errorText } from '../../../base/text/errorText.ts';

const entrySchema = z.looseObject({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
  registrytoken: z.string().optional(),
});
const configSchema = z.looseObject({
  auths: z.record(z.string(), entrySchema).default({}),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).default({}),
  currentContext: z.string().optional(),
});
export type StoredLogin = z.infer<typeof entrySchema>;
export type DockerCliConfig = z.infer<typeof configSchema>;

export const dockerConfigDir = (env: {
  DOCKER_CONFIG?: string | undefined;
  HOME?: string | undefined;
}): string => env.DOCKER_CONFIG || join(env.HOME ?? homedir(), '.docker');

/** Warns about an unreadable file: pulling without the login would fail later with a misleading message. */
export function readDockerCliConfig(dir: string): { config: DockerCliConfig; warning?: string } {
  const path = join(dir, 'config.json');
  const nothing = configSchema.parse({});
  if (!existsSync(path)) return { config: nothing };
  try {
    return { config: configSchema.parse(JSON.parse(readFileSync(path, 'utf8'))) };
  } catch (error) {
    const reason = errorText(error);
    return { config: nothing, warning: `${path} cannot be read, so no registry login is used: ${reason}` };
  }
}
