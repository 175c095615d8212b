/**
 * A container without a network. An engine asked for `none` makes a sandbox of its own for each, for which Docker starts itself anew twice: a
 * third of the processor time of a container's life (0.20 s against 0.13). With `NetworkDisabled` it makes none; runc gives the container a
 * network namespace with a loopback, as it does for everyone, and what the engine would have mounted on /etc/hosts and /etc/resolv.conf the
 * keeper writes.
 */
import type Docker from 'dockerode';
import { engineInfo } from '../places/engineInfo.ts';
import { sameUser } from './imageEntry.ts';

/** The first as Docker has it; nobody is at the address of the second (RFC 5737), and without one some resolvers refuse to be made. */
export const NAMES = [
  [
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'ff00::0\tip6-mcastprefix',
    'ff02::1\tip6-allnodes',
    'ff02::2\tip6-allrouters',
    '',
  ].join('\n'),
  'nameserver 192.0.2.53\n',
] as const;

/** Whether the loopback of such a container is up. Asked once, and again where the engine did not answer. */
export function createLoopbackProbe(docker: Docker): (network: string, user: string) => Promise<boolean> {
  let known: boolean | undefined;
  return async (network, user) => {
    // Only root writes to /etc.
    if (network !== 'none' || !sameUser(user.split(':')[0], '0')) return false;
    if (known !== undefined) return known;
    const engine = await engineInfo(docker);
    // Of other runtimes we do not know it, and Podman makes no sandbox.
    if (engine.ok) known = engine.name === 'Docker' && engine.runtime === 'runc';
    return known ?? false;
  };
}
