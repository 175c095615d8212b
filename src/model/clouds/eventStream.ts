/** Amazon's event stream: frames with checksums, each with an event of Messages or an exception in it. */
import type { EventStreamCodec } from '@smithy/eventstream-codec';
import type { StreamEvent } from '../dialects/dialect.ts';
import { asObject, asText } from '../dialects/shapes.ts';

let codec: typeof EventStreamCodec | undefined;

export async function loadFrames(): Promise<void> {
  codec ??= (await import('@smithy/eventstream-codec')).EventStreamCodec;
}

/** Exceptions by the types of errors that Messages has. */
const TYPES: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  serviceUnavailableException: 'overloaded_error',
  internalServerException: 'api_error',
  modelStreamErrorException: 'api_error',
  modelTimeoutException: 'timeout_error',
  validationException: 'invalid_request_error',
  accessDeniedException: 'permission_error',
};

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const PRELUDE = 4;

function eventOf(frame: Uint8Array): StreamEvent {
  const { headers, body } = new codec!(
    (bytes) => decoder.decode(bytes as Uint8Array),
    (text) => encoder.encode(text),
  ).decode(frame);
  const kind = String(headers[':exception-type']?.value ?? headers[':error-code']?.value ?? '');
  const payload = asObject(JSON.parse(decoder.decode(body) || '{}'));
  if (headers[':message-type']?.value !== 'event') {
    const message =
      asText(payload?.message) ?? asText(headers[':error-message']?.value) ?? (kind || 'an exception');
    return { event: 'error', data: { type: 'error', error: { type: TYPES[kind] ?? kind, message } } };
  }
  const bytes = asText(payload?.bytes);
  const data: unknown = bytes === null ? payload : JSON.parse(Buffer.from(bytes, 'base64').toString());
  return { event: asText(asObject(data)?.type), data };
}

/** No frame of a reply is this long: a length that is no length must not fill the memory. */
const LONGEST = 16 * 1024 * 1024;

/** Rejects when a frame breaks its checksum, and with whatever the body rejects with. A frame that never came whole gives no event. */
export async function* readFrames(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  let wanted = PRELUDE;
  for await (const bytes of body) {
    pieces.push(bytes);
    held += bytes.length;
    // Joined only when a whole frame is there, so that many small pieces cost no more than few.
    while (held >= wanted) {
      const joined = Buffer.concat(pieces);
      const length = joined.readUInt32BE(0);
      if (length <= PRELUDE || length > LONGEST) throw new Error(`a frame of ${length} bytes`);
      wanted = length;
      pieces = [joined];
      if (held < length) break;
      yield eventOf(joined.subarray(0, length));
      const rest = joined.subarray(length);
      pieces = rest.length === 0 ? [] : [rest];
      held = rest.length;
      wanted = PRELUDE;
    }
  }
}
