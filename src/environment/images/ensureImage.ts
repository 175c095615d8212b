/** Makes sure that an image is there: inspect, then pull by policy. Who calls it twice for one image waits for one pull. */
import type Docker from 'dockerode';
import { readFault } from '../engines/dockerFault.ts';
import { EnvironmentError } from '../environment.ts';

export type PullPolicy = 'never' | 'missing' | 'always';

export interface PullProgress {
  readonly image: string;
  readonly status: string;
  readonly currentBytes: number;
  readonly totalBytes: number;
}

export interface EnsureImageOptions {
  readonly platform?: string;
  /** Milliseconds without progress before a pull is given up; 0 waits for ever. */
  readonly stallMs?: number;
  readonly onProgress?: (progress: PullProgress) => void;
  readonly signal?: AbortSignal;
}

export interface ImageFacts {
  readonly id: string;
  /** Repo digest, else the image id. */
  readonly digest: string;
  readonly architecture: string;
  readonly pulled: boolean;
}

/** Resolves to what an engine has under that name, however it got there. */
export type EnsureImage = (image: string, options?: { signal?: AbortSignal }) => Promise<ImageFacts>;

const pulls = new Map<string, Promise<void>>();

async function inspect(docker: Docker, image: string): Promise<Omit<ImageFacts, 'pulled'> | undefined> {
  try {
    const info = await docker.getImage(image).inspect();
    return { id: info.Id, digest: info.RepoDigests?.[0] ?? info.Id, architecture: info.Architecture };
  } catch (error) {
    const fault = readFault(error);
    if (fault.status === 404) return undefined;
    if (fault.daemonGone)
      throw new EnvironmentError(
        'daemon_lost',
        `the Docker daemon does not answer: ${fault.text}; start it and run again`,
        { cause: error },
      );
    throw error;
  }
}

function pullFault(image: string, text: string, cause?: unknown): EnvironmentError {
  const missing =
    /not found|manifest unknown|does not exist|repository name .* invalid|invalid reference|denied/i.test(
      text,
    );
  const limited = /toomanyrequests|rate limit|429/i.test(text);
  const fix = limited
    ? 'the registry limits pulls: log in with docker login, wait, or use a mirror'
    : missing
      ? 'check the name, log in if it is private, or build it and use pull: never'
      : 'check the network and the registry, then resume';
  return new EnvironmentError(
    missing && !limited ? 'image_missing' : 'image_pull_failed',
    `image ${image} could not be pulled: ${text}; ${fix}`,
    { evidence: { image, registry: text }, cause },
  );
}

async function pull(docker: Docker, image: string, options: EnsureImageOptions): Promise<void> {
  const tagged = /[@:][^/]*$/.test(image) ? image : `${image}:latest`;
  let stream: NodeJS.ReadableStream;
  try {
    stream = await docker.pull(tagged, {
      ...(options.platform ? { platform: options.platform } : {}),
      ...(options.signal ? { abortSignal: options.signal } : {}),
    });
  } catch (error) {
    throw pullFault(image, readFault(error).text, error);
  }
  const layers = new Map<string, { current: number; total: number }>();
  await new Promise<void>((resolve, reject) => {
    const stallMs = options.stallMs ?? 0;
    const give = () => {
      if (stallMs <= 0) return undefined;
      return setTimeout(() => {
        if ('destroy' in stream && typeof stream.destroy === 'function') stream.destroy();
        reject(pullFault(image, `no progress for ${Math.round(stallMs / 1000)} s`));
      }, stallMs);
    };
    let timer = give();
    docker.modem.followProgress(
      stream,
      (error) => {
        clearTimeout(timer);
        if (error) reject(pullFault(image, readFault(error).text, error));
        else resolve();
      },
      (event: { id?: string; status?: string; progressDetail?: { current?: number; total?: number } }) => {
        clearTimeout(timer);
        timer = give();
        if (event.id && event.progressDetail?.total)
          layers.set(event.id, {
            current: event.progressDetail.current ?? 0,
            total: event.progressDetail.total,
          });
        let currentBytes = 0;
        let totalBytes = 0;
        for (const layer of layers.values()) {
          currentBytes += layer.current;
          totalBytes += layer.total;
        }
        options.onProgress?.({ image, status: event.status ?? '', currentBytes, totalBytes });
      },
    );
  });
}

/** Resolves to what the daemon has under that name, after a pull where the policy asks for one. */
export async function ensureImage(
  docker: Docker,
  image: string,
  policy: PullPolicy,
  options: EnsureImageOptions = {},
): Promise<ImageFacts> {
  const present = policy === 'always' ? undefined : await inspect(docker, image);
  if (present) return { ...present, pulled: false };
  if (policy === 'never')
    throw new EnvironmentError(
      'image_missing',
      `image ${image} is not on this machine and pull is "never"; build it, or set environment.pull to missing`,
      { evidence: { image } },
    );
  let running = pulls.get(image);
  if (!running) {
    running = pull(docker, image, options).finally(() => pulls.delete(image));
    pulls.set(image, running);
  }
  await running;
  const pulled = await inspect(docker, image);
  if (!pulled)
    throw new EnvironmentError(
      'image_missing',
      `image ${image} was pulled but is not there; check the disk`,
      {
        evidence: { image },
      },
    );
  return { ...pulled, pulled: true };
}
