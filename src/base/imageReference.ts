/** Names of images: the parts of a reference as Docker reads them, and the rewriting that mirrors and company registries need. */

export interface ImageReference {
  /** `docker.io` when none is written. */
  readonly registry: string;
  /** The repository, with `library/` where Docker Hub implies it. */
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}
type ParsedReference =
  | { readonly ok: true; readonly reference: ImageReference }
  | { readonly ok: false; readonly message: string };

export const DOCKER_HUB = 'docker.io';
/** The host in names of images that are made on the engine itself: no registry has it, and nothing is asked for them. */
export const OWN_HOST = 'swebatch.internal';

/** End states of containers: such an image is on the engine where it was made, and nowhere else. */
export const WORK_IMAGES = `${OWN_HOST}/work`;

export const isMadeHere = (image: string): boolean => image.startsWith(`${OWN_HOST}/`);

/** "2 to pull, 1 to build": how the images that are not here come. */
export function comingText(images: readonly string[]): string {
  const built = images.filter(isMadeHere).length;
  const pulled = images.length - built;
  return [
    ...(pulled > 0 || built === 0 ? [`${pulled} to pull`] : []),
    ...(built > 0 ? [`${built} to build`] : []),
  ].join(', ');
}
const HUB_NAMES = new Set([
  'docker.io',
  'index.docker.io',
  'registry-1.docker.io',
  'registry.hub.docker.com',
]);

/** Docker takes repositories of 255 characters; host, tag and digest come to it. */
const LONGEST = 700;
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d+)?$/;
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z0-9]+)*:[0-9a-fA-F]{32,}$/;

export function parseReference(name: string): ParsedReference {
  const wrong = (why: string): ParsedReference => ({
    ok: false,
    message: `${JSON.stringify(name.slice(0, 300))} is not an image name: ${why}`,
  });
  if (name.length > LONGEST) return wrong('it is too long');
  const [beforeDigest = '', digest, ...more] = name.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest)))
    return wrong('its digest is malformed');
  const slash = beforeDigest.indexOf('/');
  const head = slash < 0 ? '' : beforeDigest.slice(0, slash);
  // Docker's rule: the first part is a host when it has a dot or a port, or is "localhost". Newer engines take capitals for a host too, older ones
  // refuse them: no registry has such a name.
  const hasHost = /[.:]/.test(head) || head === 'localhost';
  const path = hasHost ? beforeDigest.slice(slash + 1) : beforeDigest;
  const colon = path.indexOf(':');
  const repository = colon < 0 ? path : path.slice(0, colon);
  const tag = colon < 0 ? undefined : path.slice(colon + 1);
  if (hasHost && !HOST.test(head)) return wrong(`${JSON.stringify(head)} is not a host`);
  if (tag !== undefined && !TAG.test(tag)) return wrong(`the tag ${JSON.stringify(tag)} is malformed`);
  if (repository !== repository.toLowerCase()) return wrong('the repository must be in lower case');
  if (repository === '' || !repository.split('/').every((part) => COMPONENT.test(part)))
    return wrong('the repository is malformed');
  const registry = hasHost ? (HUB_NAMES.has(head) ? DOCKER_HUB : head) : DOCKER_HUB;
  const isOfficial = registry === DOCKER_HUB && !repository.includes('/');
  const full = isOfficial ? `library/${repository}` : repository;
  return { ok: true, reference: { registry, repository: full, tag, digest } };
}

/** The whole name: registry, repository and tag or digest, the same for every way of writing one image. */
export function canonicalName({ registry, repository, tag, digest }: ImageReference): string {
  const suffix = digest ? `@${digest}` : `:${tag ?? 'latest'}`;
  return `${registry}/${repository}${suffix}`;
}

/** The name as the engine lists it: without Docker Hub's host, with a tag. */
export function familiarName(name: string): string {
  const parsed = parseReference(name);
  return parsed.ok ? canonicalName(parsed.reference).replace(/^docker\.io\/(library\/)?/, '') : name;
}

/** Equal for all names of one image: a digest says what it is, from any registry. */
export function imageKey(name: string): string {
  const parsed = parseReference(name);
  if (!parsed.ok) return name;
  return parsed.reference.digest ?? canonicalName(parsed.reference);
}

interface RewriteRule {
  /** Prefix of the name, such as `swebench/` or `docker.io/swebench/`. */
  readonly from: string;
  readonly to: string;
}

/** Rules are written as names are: without a host they mean Docker Hub. */
function wholePrefix(from: string): string {
  const head = from.split('/', 1)[0]!;
  if (HUB_NAMES.has(head)) return DOCKER_HUB + from.slice(head.length);
  return /[.:]/.test(head) || head === 'localhost' ? from : `${DOCKER_HUB}/${from}`;
}

/** The first rule whose prefix fits; prefixes are compared with whole names, so `swebench/x` and `docker.io/swebench/x` are one. */
function rewriteReference(reference: ImageReference, rules: readonly RewriteRule[]): ParsedReference {
  const name = canonicalName(reference);
  const rule = rules.find(({ from }) => name.startsWith(wholePrefix(from)));
  if (!rule) return { ok: true, reference };
  const parsed = parseReference(rule.to + name.slice(wholePrefix(rule.from).length));
  // Silently from somewhere else than the person said would be worse than not at all.
  return parsed.ok ? parsed : { ok: false, message: `${parsed.message} (by images.rewrite from ${name})` };
}

/** The name that is asked for in place of the row's. */
export function sourceOf(image: string, rules: readonly RewriteRule[]): ParsedReference {
  const parsed = parseReference(image);
  return parsed.ok ? rewriteReference(parsed.reference, rules) : parsed;
}

/** The places of an image, in order: the mirrors of its registry, each with the path it may have, then the registry itself. */
export function candidatesOf(
  reference: ImageReference,
  mirrors: Readonly<Record<string, readonly string[]>>,
): ImageReference[] {
  const places = mirrors[reference.registry] ?? [];
  const at = (place: string): ImageReference => {
    const [registry = '', ...path] = place.split('/').filter((part) => part !== '');
    return { ...reference, registry, repository: [...path, reference.repository].join('/') };
  };
  return [...places.map(at), reference];
}
