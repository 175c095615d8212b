/** GPUs of an engine for one container: as `docker run --gpus N` asks for them, or by their names where the engine knows those. */
import type Docker from 'dockerode';
import { EnvironmentError, REFUSED_OPTION } from '../environment.ts';
import { engineInfo } from '../places/engineInfo.ts';

export async function deviceRequests(docker: Docker, count: number): Promise<Docker.DeviceRequest[]> {
  const engine = await engineInfo(docker);
  const has = engine.ok ? engine.gpus : 'any';
  if (has === 'any') return [{ Driver: 'nvidia', Count: count, Capabilities: [['gpu']] }];
  if (has.length < count)
    throw new EnvironmentError(
      'start_failed',
      `the task asks for ${count} GPUs, and the engine names ${has.length}`,
      { sub: REFUSED_OPTION },
    );
  return [{ Driver: 'cdi', DeviceIDs: has.slice(0, count) }];
}
