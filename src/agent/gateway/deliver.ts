/** Writes an answer to the program. While a stream has to wait, signs of life keep its connection open. */
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { startTimer } from '../../base/async/timer.ts';
import { untakenBytes } from '../../environment/relay/carrier.ts';
import type { DialectName } from '../../model/dialects/dialects.ts';
import type { Answer, Outcome } from './answer.ts';
import { errorBody, errorEvent, type Refusal, statusOf } from './errorBodies.ts';
import { returnedHeaders } from './requestHeaders.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
/** Clients that try again heed it. */
const NO_RETRY = { 'x-should-retry': 'false' };

/** Google's client for JavaScript takes a comment for the beginning of an event and then reads none; it skips empty lines. */
const signOfLife = (dialect: DialectName): string =>
  dialect === 'gemini' ? '\n\n' : ': waiting for the provider\n\n';

export function refuse(
  response: ServerResponse,
  dialect: DialectName,
  refusal: Refusal,
  message: string,
): void {
  const text = JSON.stringify(errorBody(dialect, refusal, message));
  response.writeHead(statusOf(refusal), { ...JSON_TYPE, ...NO_RETRY }).end(text);
}

/** By connection: what takes back that its last answer was got. */
const lastOf = new WeakMap<Duplex, () => void>();

/** A connection of the relay says so by closing without its end, or with bytes that nobody took; one of this machine by an error. */
const brokeOff = (socket: Duplex): boolean =>
  socket instanceof Socket ? socket.errored !== null : !socket.readableEnded || untakenBytes(socket) > 0;

/** Whoever breaks a connection off leaves unread what is on its way, also when the last byte has left here. */
function ifBrokenOff(socket: Duplex, takeBack: () => void): void {
  if (!lastOf.has(socket))
    socket.once('close', () => {
      if (brokeOff(socket)) lastOf.get(socket)?.();
    });
  lastOf.set(socket, takeBack);
}

export interface Delivery {
  readonly response: ServerResponse;
  readonly dialect: DialectName;
  readonly streamed: boolean;
  readonly keepAliveMs: number;
}

export function deliver(answer: Answer, { response, dialect, streamed, keepAliveMs }: Delivery): void {
  /** A sign of life has gone out: the status is said, so an error has to be an event. */
  let early = false;
  const alive = startTimer(streamed ? keepAliveMs : 0, () => {
    if (!early) response.writeHead(200, { 'content-type': 'text/event-stream' });
    early = true;
    response.write(signOfLife(dialect));
    alive.restart();
  });
  const fail = (outcome: Extract<Outcome, { kind: 'refused' | 'error' }>): void => {
    if (early) {
      const message = outcome.kind === 'error' ? outcome.message : outcome.text.slice(0, 2000);
      const refusal = outcome.kind === 'error' ? outcome.refusal : 'bad_request';
      response.end(errorEvent(dialect, refusal, message));
    } else if (outcome.kind === 'error') refuse(response, dialect, outcome.refusal, outcome.message);
    else
      response
        .writeHead(outcome.status, { ...returnedHeaders(outcome.headers), ...NO_RETRY })
        .end(outcome.text);
  };
  const reading = answer.read({
    head({ status, headers }) {
      alive.cancel();
      if (!early) response.writeHead(status, returnedHeaders(headers));
      response.flushHeaders();
    },
    data: (bytes) => response.write(bytes),
    end(outcome) {
      alive.cancel();
      if (outcome.kind === 'whole') response.end();
      // A clean end would look like the whole answer.
      else if (outcome.kind === 'cut') response.destroy();
      else fail(outcome);
    },
  });
  response.on('drain', reading.more);
  // A response that has ended has no socket any more.
  const { socket } = response;
  response.on('finish', () => {
    const takeBack = answer.delivered();
    if (socket) ifBrokenOff(socket, takeBack);
  });
  response.on('close', () => {
    alive.cancel();
    reading.leave();
  });
}
