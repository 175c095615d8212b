/** The configuration of one container: the arm's, with what its task asks for. */
import type { ContainerNeeds } from '../base/containerNeeds.ts';
import { parseDuration } from '../base/text/units.ts';
import type { EnvironmentConfig } from './environmentConfig.ts';

/** `imageFolder`: what `cwd: image` means. */
export function ownConfig(
  config: EnvironmentConfig,
  needs: ContainerNeeds | undefined,
  imageFolder = '/',
): EnvironmentConfig {
  if (!needs) return config;
  const { cwd, user, network, memoryMb, cpus, diskMb, env, lifetimeS } = needs;
  const open = config.network === 'none' ? 'bridge' : config.network;
  return {
    ...config,
    ...(cwd !== undefined && { cwd: cwd === 'image' ? imageFolder : cwd }),
    ...(user !== undefined && { user }),
    ...(network !== undefined && { network: network === 'none' ? 'none' : open }),
    ...(memoryMb !== undefined && { memory: `${memoryMb}m` }),
    ...(cpus !== undefined && { cpus }),
    ...(diskMb !== undefined && { disk: `${diskMb}m` }),
    ...(env !== undefined && { env: { ...config.env, ...env } }),
    ...(lifetimeS !== undefined && { container_timeout: longer(config.container_timeout, lifetimeS) }),
  };
}

/** 0 is no limit. */
function longer(configured: string | number, asked: number): string | number {
  const seconds = parseDuration(configured);
  return seconds === 0 || seconds >= asked ? configured : asked;
}
