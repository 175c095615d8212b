/** An answer "100 Continue" that nobody asked for is read past, as HTTP says (RFC 9110, 15.2); undici ends the connection at it. */
import { buildConnector } from 'undici';

const CONTINUE = /^HTTP\/1\.[01] 100(?: [^\r\n]{0,200})?\r\n(?:[^\r\n]{1,4000}\r\n){0,50}\r\n/;
const BEGINNINGS = ['HTTP/1.0 100', 'HTTP/1.1 100'];
/** As much of it is waited for. */
const LONGEST = 8192;

const mayBecome = (text: string): boolean =>
  text.length < LONGEST &&
  (/^HTTP\/1\.[01] 100[ \r]/.test(text) || BEGINNINGS.some((begins) => begins.startsWith(text)));

/** `written`: bytes of requests so far. What comes first after some were written is the head of an answer, and all else is its rest. */
export function pastContinue(read: () => Buffer | null, written: () => number): () => Buffer | null {
  let answered = 0;
  let begun: Buffer | null = null;
  return () => {
    let chunk = read();
    if (chunk === null || written() === answered) return chunk;
    if (begun) chunk = Buffer.concat([begun, chunk]);
    begun = null;
    while (chunk.length > 0) {
      const text: string = chunk.toString('latin1', 0, LONGEST);
      const found = CONTINUE.exec(text)?.[0].length ?? 0;
      if (found === 0 && mayBecome(text)) {
        begun = chunk;
        return null;
      }
      if (found === 0) {
        answered = written();
        return chunk;
      }
      chunk = chunk.subarray(found);
    }
    return null;
  };
}

export function connectorPastContinue(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options);
  return (asked, callback) =>
    connect(asked, (...connected) => {
      const [error, socket] = connected;
      if (error === null) {
        const read = socket.read.bind(socket) as () => Buffer | null;
        socket.read = pastContinue(read, () => socket.bytesWritten);
      }
      callback(...connected);
    });
}
