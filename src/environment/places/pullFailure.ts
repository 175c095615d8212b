/**
 * The causes of a failed pull, told apart by a person's part in the cure. The Docker engine gives text only, so the table below is read from
 * the messages of engine 20.10 to 28 and of the registries; a message that fits nothing stays `unknown` with the engine's words.
 */
import { OWN_HOST, WORK_IMAGES } from '../../base/imageReference.ts';
import { EnvironmentError, type EnvironmentErrorCode } from '../environment.ts';

export const PULL_FAILURES = {
  wrong_name: { code: 'image_missing', again: false },
  missing: { code: 'image_missing', again: false },
  not_local: { code: 'image_missing', again: false },
  no_access: { code: 'image_pull_failed', again: false },
  wrong_platform: { code: 'image_pull_failed', again: false },
  rate_limited: { code: 'image_pull_failed', again: true },
  stalled: { code: 'image_pull_failed', again: true },
  interrupted: { code: 'image_pull_failed', again: true },
  unreachable: { code: 'image_pull_failed', again: true },
  disk_full: { code: 'disk_full', again: false },
  build_failed: { code: 'image_build_failed', again: false },
  unknown: { code: 'image_pull_failed', again: true },
} as const satisfies Record<string, { code: EnvironmentErrorCode; again: boolean }>;
export type PullFailureKind = keyof typeof PULL_FAILURES;

/** Words of engines and registries about a pull that failed (T-34; observed: "causes" in tests/environment/places/images/pure.test.ts). */
const MESSAGES: readonly (readonly [PullFailureKind, RegExp])[] = [
  // The log of a build is no word of a registry.
  ['build_failed', /^the build failed: /],
  ['rate_limited', /toomanyrequests|too many requests|rate limit|HTTP (?:status:? )?429/i],
  ['disk_full', /no space left on device|disk quota exceeded/i],
  [
    'wrong_platform',
    // The last two: engines that keep images in containerd's store, as Docker 29 does by default (observed:
    // tests/environment/places/images/pure.test.ts).
    /no matching manifest|does not (?:match|provide) the specified platform|cannot be used on this platform|no match for platform/i,
  ],
  [
    'wrong_name',
    /invalid reference format|invalid repository name|repository name must be|invalid tag format/i,
  ],
  // Docker Hub says the same for a repository that is private and one that does not exist.
  [
    'no_access',
    /access .*denied|denied:|unauthorized|authentication required|no basic auth|HTTP (?:status:? )?40[13]|: 403 |forbidden/i,
  ],
  ['missing', /manifest unknown|name unknown|not found|no such image/i],
  [
    'interrupted',
    /unexpected eof|connection reset|broken pipe|verification failed|digest mismatch|short read|unexpected commit (?:digest|size)|bad record MAC/i,
  ],
  ['unreachable', /connection refused|no such host|i\/o timeout|deadline exceeded|network is unreachable/i],
  [
    'unreachable',
    /timeout exceeded|handshake timeout|http response to https|x509|HTTP (?:status:? )?5\d\d|: 5\d\d |server misbehaving|temporary failure in name/i,
  ],
];

/** "Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host", of a base image. */
const UNREACHED = /(?:Get|Head) "https?:\/\/[^"]{1,300}": (?:dial|net|context|read|EOF)/;

/** Engines say within their first lines what is wrong. */
const READ_CHARACTERS = 4000;

export function classifyPullMessage(message: string): PullFailureKind {
  const text = message.slice(0, READ_CHARACTERS);
  return MESSAGES.find(([, pattern]) => pattern.test(text))?.[0] ?? 'unknown';
}

interface PullFailureFacts {
  readonly image: string;
  readonly registry: string;
  readonly hasCredentials: boolean;
  readonly platform?: string | undefined;
  readonly engineMessage: string;
  /** The image was here already. */
  readonly local?: boolean;
}

const ownName = (registry: string) => (registry === 'docker.io' ? '' : ` ${registry}`);

const FIXES: Readonly<Record<PullFailureKind, (facts: PullFailureFacts) => string>> = {
  wrong_name: () => 'correct the image of the dataset row, or environment.image',
  missing: () =>
    'check repository and tag; build the image, or give its name in the row or in environment.image',
  not_local: ({ image, registry }) =>
    registry === OWN_HOST
      ? 'build it with "swebatch images build" and the folder of its tasks; --pull missing (environment.pull) lets a run build it'
      : `pull it with "swebatch images pull", "docker pull ${image}", or allow --pull missing (environment.pull)`,
  no_access: ({ registry, hasCredentials }) =>
    hasCredentials
      ? `the stored login of ${registry} has no right to it, or the repository does not exist`
      : `log in with "docker login${ownName(registry)}", or check whether the repository exists`,
  wrong_platform: ({ platform, local }) =>
    local && platform !== undefined
      ? `pull it for ${platform} with --pull always, or set environment.platform to what the copy is`
      : `the image is not built for ${platform ?? "this machine's platform"}; set environment.platform, for example linux/amd64`,
  rate_limited: ({ hasCredentials, registry }) =>
    hasCredentials
      ? 'wait for the reset, use a mirror (images.mirrors), or pull less at a time'
      : `"docker login${ownName(registry)}" raises the limit; or wait for the reset, or use a mirror (images.mirrors)`,
  stalled: ({ registry }) =>
    `the connection to ${registry} stands still: try again, use a mirror, or raise environment.pull_timeout`,
  interrupted: () => 'the transfer broke several times: try again; layers that are complete are kept',
  unreachable: ({ registry }) =>
    `check that ${registry} can be reached from the Docker engine (proxy, DNS, certificate)`,
  disk_full: () =>
    'free space on the disk of the Docker engine: "swebatch images gc", or set images.policy to remove-after',
  build_failed: ({ image, engineMessage }) => {
    if (image.startsWith(`${WORK_IMAGES}:`))
      return 'it was the end state of an attempt, which is removed once there is a verdict and is on no other engine: only a new attempt has another';
    const offline = UNREACHED.test(engineMessage.split('. The end of its log:')[0]!);
    const fix = offline
      ? 'a registry that its Dockerfile names does not answer: check proxy, DNS and certificate of the Docker engine'
      : 'correct its Dockerfile';
    return `${fix}; builds/ beside images.jsonl in the state folder has the whole log`;
  },
  unknown: () => 'try "docker pull" by hand; the engine\'s own words stand above',
};

const SAYS: Readonly<Record<PullFailureKind, string>> = {
  wrong_name: 'is not a valid image name',
  missing: 'does not exist in its registry',
  not_local: 'is not on this engine, and --pull never neither pulls nor builds',
  no_access: 'may not be pulled',
  wrong_platform: 'does not exist for the platform',
  rate_limited: 'was refused: too many pulls',
  stalled: 'stopped coming',
  interrupted: 'broke off',
  unreachable: 'could not be fetched: the registry does not answer',
  disk_full: 'does not fit on the disk',
  build_failed: 'could not be built',
  unknown: 'could not be pulled',
};

/** The error an attempt ends with: what happened, the registry's words, what to do. */
export function pullError(kind: PullFailureKind, facts: PullFailureFacts): EnvironmentError {
  const fix = FIXES[kind](facts);
  const said = facts.engineMessage
    ? ` (${facts.engineMessage.trim().slice(0, kind === 'build_failed' ? 2000 : 400)})`
    : '';
  return new EnvironmentError(PULL_FAILURES[kind].code, `image ${facts.image} ${SAYS[kind]}${said}; ${fix}`, {
    sub: kind,
    evidence: { image: facts.image, registry: facts.registry, message: facts.engineMessage, fix },
  });
}
