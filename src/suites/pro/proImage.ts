/**
 * Images of SWE-bench Pro from the two Dockerfiles that its repository keeps for each instance. They become one file of two stages, so that one
 * build makes the image, and an engine builds equal base stages once.
 */
import { OWN_HOST } from '../../base/imageReference.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { ImageBuild } from '../suite.ts';

const BASE = 'swebatch-base';
/** Scale's own mirror of Docker Hub, which nobody else can ask. */
const MIRROR = /^(FROM\s+(?:--\S+\s+)*)\d+\.dkr\.ecr\.[\w.-]+\/docker-hub\/(?:library\/)?/i;
/** `FROM base_<repository>___<date>` and the same as a tag of Scale's registry: what the base Dockerfile makes. */
const OF_BASE = /^(FROM\s+(?:--\S+\s+)*)(?:\S+:)?base_\S+/i;
const FROM = /^FROM\s/i;
/** They install whole systems. */
const TIMEOUT_S = 2 * 3600;

function withoutName(from: string): string {
  const words = from.trim().split(/\s+/);
  return (words.at(-2)?.toUpperCase() === 'AS' ? words.slice(0, -2) : words).join(' ');
}

/** The last stage under the name that the instance's file begins with. */
function namedLast(lines: readonly string[]): string[] {
  const last = lines.findLastIndex((line) => FROM.test(line));
  return lines.map((line, at) => (at === last ? `${withoutName(line)} AS ${BASE}` : line));
}

/** One Dockerfile for both; undefined where one is missing, or the second does not stand on the first. */
export function proDockerfile(base: unknown, instance: unknown): string | undefined {
  if (typeof base !== 'string' || typeof instance !== 'string') return undefined;
  const lines = instance.split('\n');
  if (!base.split('\n').some((line) => FROM.test(line)) || !lines.some((line) => OF_BASE.test(line)))
    return undefined;
  const below = namedLast(base.split('\n').map((line) => line.replace(MIRROR, '$1')));
  return [...below, '', ...lines.map((line) => line.replace(OF_BASE, `$1${BASE}`))].join('\n');
}

const dockerfileOf = ({ extra }: Instance) => proDockerfile(extra.base_dockerfile, extra.instance_dockerfile);
const nameOf = (dockerfile: string): string => `${OWN_HOST}/pro:${sha256(dockerfile).slice(0, 32)}`;

export function proImage(instance: Instance): string | undefined {
  const dockerfile = dockerfileOf(instance);
  return dockerfile === undefined ? undefined : nameOf(dockerfile);
}

/** Nothing, where the instance has an image of a registry. */
export function proBuilds(instance: Instance): readonly ImageBuild[] {
  const dockerfile = dockerfileOf(instance);
  if (dockerfile === undefined || instance.image !== nameOf(dockerfile)) return [];
  const content = Buffer.from(dockerfile);
  const files = () => [{ path: 'Dockerfile', content, executable: false }];
  return [{ image: instance.image, files, timeoutS: TIMEOUT_S }];
}
