/** A container's file system as an image. */
import type Docker from 'dockerode';
import { readFault } from '../places/dockerFault.ts';

interface CommitRequest {
  readonly _query: Readonly<Record<string, string>>;
  readonly _body: object;
}

/**
 * The container stands still meanwhile where it can: rootless Podman on cgroup v1 cannot pause one and refuses. Callers have ended whatever
 * ran in it before, so nothing writes then either.
 */
export async function commitContainer(
  container: Docker.Container,
  { _query, _body }: CommitRequest,
): Promise<unknown> {
  const commit = (pause: boolean): Promise<unknown> =>
    container.commit({ _query: { container: container.id, ..._query, pause }, _body });
  try {
    return await commit(true);
  } catch (error) {
    if (!/can ?not pause/.test(readFault(error).text)) throw error;
    return commit(false);
  }
}
