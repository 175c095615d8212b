// A port for a program that cannot choose one itself. It lies below those that the kernel gives to connections that go out and to listeners
// that ask for any: what other tests do meanwhile does not take it between this look and the start of the program.
import { once } from 'node:events';
import { createServer } from 'node:net';

const LOWEST = 20_000;
const COUNT = 10_000;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * COUNT);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
