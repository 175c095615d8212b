/**
 * An engine's refusals of a configuration. An engine checks what a container asks for before it looks for the image, so a container of an
 * image that nobody has is refused for one of both, and none is made.
 */
import type Docker from 'dockerode';
import { type OwnConfig, ownConfig } from '../container/container.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { currentOwner } from '../owner.ts';
import { daemonAnswer, readFault } from '../places/dockerFault.ts';
import { containerSpec } from './container.ts';

const NOTHING = 'swebatch.internal/nothing:none';
/** A refusal that comes later fails attempt by attempt: a slow engine has its time. */
const ANSWER_MS = 30_000;
/** Networks of every engine. */
const BUILT_IN = ['none', 'bridge', 'host'];

/** Clauses; empty where nothing is refused, or the engine does not say. */
export async function engineRefusals(
  docker: Docker,
  configured: EnvironmentConfig,
  capAdd: readonly string[] = [],
): Promise<string[]> {
  const config = ownConfig(configured, undefined);
  const found = await Promise.all([
    refusedNetwork(docker, config.network),
    refusedSpec(docker, config, capAdd),
  ]);
  return found.filter((one) => one !== null);
}

async function refusedNetwork(docker: Docker, network: string): Promise<string | null> {
  if (BUILT_IN.includes(network) || network.startsWith('container:')) return null;
  try {
    await daemonAnswer(docker.getNetwork(network).inspect(), ANSWER_MS);
    return null;
  } catch (error) {
    if (readFault(error).status !== 404) return null;
    const networks = await docker.listNetworks().catch(() => []);
    const names = networks.map(({ Name }) => Name).filter((name) => name !== 'host');
    return `it has no network "${network}"${names.length > 0 ? `, but ${names.join(', ')}` : ''}`;
  }
}

async function refusedSpec(
  docker: Docker,
  config: OwnConfig,
  capAdd: readonly string[],
): Promise<string | null> {
  const request = { instanceId: 'preflight', owner: currentOwner('preflight', 'preflight') };
  const spec = containerSpec(
    { config, image: NOTHING, request, quietEnv: false, capAdd, storageBytes: 0 },
    `swebatch-preflight-${process.pid}`,
  );
  try {
    const made = await daemonAnswer(docker.createContainer(spec), ANSWER_MS);
    await daemonAnswer(made.remove({ force: true }), ANSWER_MS);
    return null;
  } catch (error) {
    const { status, text } = readFault(error);
    return status === 400 ? `it refuses such a container: ${text}` : null;
  }
}
