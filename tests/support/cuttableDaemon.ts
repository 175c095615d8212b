/** A Docker socket in front of the real one, whose connections a test can cut and refuse. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SOCKET = process.env.DOCKER_HOST?.replace(/^unix:\/\//, '') ?? '/var/run/docker.sock';

const REFUSED = JSON.stringify({ message: 'device is busy' });
const REFUSAL = `HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: ${REFUSED.length}\r\n\r\n${REFUSED}`;

export interface CuttableDaemon {
  readonly path: string;
  cut(): void;
  /** Cuts when the text is to be sent to the daemon, which never sees it. */
  cutBefore(text: string): void;
  refuse(on: boolean): void;
  /** Removals of containers are answered with 500, which the engine never sees. */
  keepContainers(on: boolean): void;
  /** Resolves once the daemon has sent the text on one of the connections. */
  passed(text: string): Promise<void>;
  close(): void;
}

export function cuttableDaemon(): CuttableDaemon {
  const folder = mkdtempSync(join(tmpdir(), 'swebatch-daemon-'));
  const path = join(folder, 'docker.sock');
  const pairs = new Set<Socket>();
  const watchers = new Set<(chunk: Buffer) => void>();
  let refused = false;
  let kept = false;
  let unsent: string | undefined;
  const server: Server = createServer((client) => {
    if (refused) return void client.destroy();
    const upstream = connect(SOCKET);
    for (const socket of [client, upstream]) {
      pairs.add(socket);
      socket.on('error', () => undefined).on('close', () => pairs.delete(socket));
    }
    upstream.pipe(client);
    client.on('data', (chunk: Buffer) => {
      if (unsent !== undefined && chunk.includes(unsent)) {
        unsent = undefined;
        client.pause();
        // What was sent before has arrived by then.
        setTimeout(cut, 300);
      } else if (kept && chunk.toString('latin1').startsWith('DELETE /containers/')) client.write(REFUSAL);
      else upstream.write(chunk);
    });
    client.on('end', () => upstream.end());
    upstream.on('data', (chunk: Buffer) => {
      for (const watcher of watchers) watcher(chunk);
    });
  }).listen(path);
  const cut = () => {
    for (const socket of pairs) socket.destroy();
  };
  return {
    path,
    cut,
    cutBefore: (text) => {
      unsent = text;
    },
    refuse: (on) => {
      refused = on;
    },
    keepContainers: (on) => {
      kept = on;
    },
    passed: (text) =>
      new Promise((resolve) => {
        const watcher = (chunk: Buffer) => {
          if (!chunk.includes(text)) return;
          watchers.delete(watcher);
          resolve();
        };
        watchers.add(watcher);
      }),
    close: () => {
      cut();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
