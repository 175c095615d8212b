/** Processes in a container by the Engine API's exec, with their streams attached. */
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import type { StartProcess } from '../exec/ports.ts';
import { createDemux } from './demux.ts';

export const processStarter =
  (container: Docker.Container): StartProcess =>
  async (argv, { env, stdin = false } = {}) => {
    const exec = await container.exec({
      Cmd: [...argv],
      ...(env && { Env: [...env] }),
      ...(stdin && { AttachStdin: true }),
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
      // Not the image's: the agent may have removed that folder.
      WorkingDir: '/',
    });
    const stream: Duplex = await exec.start({ hijack: true, stdin });
    return {
      listen({ stdout, stderr, gone }) {
        stream.on('end', gone).on('close', gone).on('error', gone);
        stream.on(
          'data',
          createDemux((type, data) => (type === 1 ? stdout(data) : stderr(data))),
        );
      },
      write: (data) => void stream.write(data),
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      destroy: () => void stream.destroy(),
    };
  };
