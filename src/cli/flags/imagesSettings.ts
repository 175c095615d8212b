/** What a run's own configuration says about images and engines, and the flags of `images` over it. */
import { type ImagesConfig, mirrorSchema } from '../../environment/images/imagesConfig.ts';
import { UserError } from '../../service/userError.ts';
import type { ImagesArgs } from './imagesFlags.ts';
import { loadFiles } from './runOptionsOf.ts';

export interface ImagesSettings {
  readonly images: ImagesConfig;
  readonly platform: string | undefined;
  readonly pullTimeout: number;
  /** Of `environment.hosts`; one undefined is the default engine. */
  readonly hosts: readonly (string | undefined)[];
}

/** The configuration that a run will have, so that what is fetched before the night comes from where the night would fetch it. */
export function settingsOf(args: ImagesArgs): ImagesSettings {
  const specs = args.config ?? [];
  const { images, environment } = loadFiles(
    specs.every((spec) => spec.includes('=')) ? ['default', ...specs] : specs,
    {},
  ).config;
  const hosts = environment.hosts.map(({ host }) => host);
  return {
    images: {
      ...images,
      ...(args.policy !== undefined && { policy: args.policy }),
      ...(args.parallel !== undefined && { max_concurrent_pulls: args.parallel }),
      ...(args.mirror && { mirrors: mirrorsOf(args.mirror) }),
    },
    platform: args.platform ?? environment.platform,
    pullTimeout: args.pullTimeout ?? environment.pull_timeout,
    hosts: hosts.length > 0 ? hosts : [undefined],
  };
}

function mirrorsOf(pairs: readonly string[]): ImagesConfig['mirrors'] {
  const split = pairs.map((pair) => pair.split('=') as [string, string]);
  for (const [registry, mirror] of split) {
    const checked = mirrorSchema.safeParse(mirror);
    if (!checked.success)
      throw new UserError(`--mirror ${registry}=${mirror}: ${checked.error.issues[0]!.message}`);
  }
  const byRegistry = Map.groupBy(split, ([registry]) => registry);
  return Object.fromEntries([...byRegistry].map(([registry, list]) => [registry, list.map((p) => p[1])]));
}
