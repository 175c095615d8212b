/** `tokenFile` of a user in a kubeconfig, which kubectl reads and the client package leaves out: with it no request had a token. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

const fileSchema = z.looseObject({
  users: z
    .array(
      z.looseObject({
        name: z.string(),
        user: z.looseObject({ tokenFile: z.string().optional() }).nullish(),
      }),
    )
    .nullish(),
});

/** The absolute path that the first file naming this user gives; relative ones are relative to that file. */
export function tokenFileOf(user: string, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    if (!existsSync(path)) continue;
    const read = fileSchema.safeParse(parse(readFileSync(path, 'utf8')));
    const found = read.success ? read.data.users?.find(({ name }) => name === user) : undefined;
    if (found) return found.user?.tokenFile && resolve(dirname(path), found.user.tokenFile);
  }
  return undefined;
}

/**
 * A KubeConfig that reads `tokenFile` too, from the first file of $KUBECONFIG or from ~/.kube/config. The package reads the token anew each minute,
 * as it does inside of a cluster.
 */
export function kubeConfigWithTokenFiles(
  client: Pick<typeof import('@kubernetes/client-node'), 'KubeConfig'>,
) {
  const config = new client.KubeConfig();
  const load = config.loadFromFile.bind(config);
  const paths: string[] = [];
  config.loadFromFile = (file, options) => {
    paths.push(file);
    load(file, options);
  };
  return {
    config,
    /** After a context was chosen. */
    takeTokenFile(): void {
      const user = config.getCurrentUser();
      // What is stated beside it comes first.
      if (!user || user.token || user.authProvider || user.exec) return;
      const tokenFile = tokenFileOf(user.name, paths);
      if (tokenFile === undefined) return;
      const shared = user as { authProvider?: unknown };
      shared.authProvider = { name: 'tokenFile', config: { tokenFile } };
    },
  };
}
