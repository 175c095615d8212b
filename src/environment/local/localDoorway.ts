/** A port on this machine's own loopback. Several attempts share it, so the port is whichever is free. */
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Doorway, EnvironmentError } from '../environment.ts';

export async function openLocalDoorway(onConnection: (connection: Duplex) => void): Promise<Doorway> {
  const open = new Set<Socket>();
  const broken = Promise.withResolvers<EnvironmentError>();
  const listening = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    onConnection(socket);
  });
  server.on('error', (error) => {
    listening.reject(new EnvironmentError('start_failed', `no port can be opened: ${error.message}`));
    broken.resolve(new EnvironmentError('died', `the port broke: ${error.message}`, { sub: 'relay' }));
  });
  server.listen(0, '127.0.0.1', () => listening.resolve());
  await listening.promise;
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    broken: broken.promise,
    async close() {
      for (const socket of open) socket.destroy();
      if (server.listening) server.close();
    },
  };
}
