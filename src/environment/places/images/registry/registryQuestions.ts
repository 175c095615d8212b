/** What is asked of the registries of an image, mirrors first, with the logins that the docker CLI keeps. */

import {
  candidatesOf,
  DOCKER_HUB,
  type ImageReference,
  OWN_HOST,
  sourceOf,
} from '../../../../base/imageReference.ts';
import { readDockerCliConfig } from '../../engines/dockerCliConfig.ts';
import type { ImagesConfig } from '../imagesConfig.ts';
import { askExists, askManifest, askReset, type ManifestAnswer } from './askRegistry.ts';
import { findLogin, type RegistryLogin } from './credentials.ts';

export interface RegistryQuestions {
  loginOf(registry: string): Promise<RegistryLogin | undefined>;
  /** Layers and sizes. */
  manifestOf(image: string, signal?: AbortSignal): Promise<ManifestAnswer>;
  /** Whether it is there, without using up a pull. */
  existsOf(image: string, signal?: AbortSignal): Promise<ManifestAnswer>;
  /** Until when a registry that refused stays closed. */
  resetOf(reference: ImageReference, login: RegistryLogin | undefined): Promise<number | undefined>;
  /** A question for its manifest counts as a pull. */
  isCostly(image: string): boolean;
}

export interface RegistryQuestionsOptions {
  readonly config: Pick<ImagesConfig, 'rewrite' | 'mirrors' | 'insecure_registries'>;
  readonly platform?: string | undefined;
  readonly dockerConfigDir: string;
  readonly onWarning: (message: string) => void;
}

/** Built on the engine: nobody knows its size before, and no registry is asked. */
const BUILT_HERE: ManifestAnswer = { ok: true, digest: '', layers: [], platforms: [] };
const isOwn = (image: string): boolean => image.startsWith(`${OWN_HOST}/`);

export function createRegistryQuestions(options: RegistryQuestionsOptions): RegistryQuestions {
  const { config, platform, dockerConfigDir, onWarning } = options;
  const told = new Set<string>();
  const warnOnce = (message: string) => {
    if (!told.has(message)) onWarning(message);
    told.add(message);
  };
  // Read anew for each pull, as Docker does: helpers give tokens that last an hour, and a night may need a login that came later.
  const loginOf: RegistryQuestions['loginOf'] = (registry) => {
    const cli = readDockerCliConfig(dockerConfigDir);
    if (cli.warning) warnOnce(cli.warning);
    return findLogin(cli.config, registry, undefined, warnOnce);
  };
  const asking = (login: RegistryLogin | undefined) => ({
    login,
    platform,
    insecure: config.insecure_registries,
  });
  const sourcesOf = (image: string): ImageReference[] => {
    const wanted = sourceOf(image, config.rewrite);
    return wanted.ok ? candidatesOf(wanted.reference, config.mirrors) : [];
  };
  const ask = async (
    image: string,
    question: typeof askManifest,
    signal: AbortSignal | undefined,
  ): Promise<ManifestAnswer> => {
    if (isOwn(image)) return BUILT_HERE;
    let answer: ManifestAnswer | undefined;
    for (const [i, reference] of sourcesOf(image).entries()) {
      // Behind a mirror that lacks images, each question for sizes would use up a pull of Docker Hub's.
      const free = i > 0 && reference.registry === DOCKER_HUB ? askExists : question;
      answer = await free(reference, { ...asking(await loginOf(reference.registry)), signal });
      if (answer.ok) return answer;
    }
    if (answer) return answer;
    const wanted = sourceOf(image, config.rewrite);
    const message = wanted.ok ? '' : wanted.message;
    return { ok: false, status: 0, retryAfterMs: undefined, message };
  };
  return {
    loginOf,
    manifestOf: (image, signal) => ask(image, askManifest, signal),
    existsOf: (image, signal) => ask(image, askExists, signal),
    resetOf: (reference, login) => askReset(reference, asking(login)),
    isCostly: (image) => sourcesOf(image)[0]?.registry === DOCKER_HUB,
  };
}
