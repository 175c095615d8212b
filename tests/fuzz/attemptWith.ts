import type { Dialect } from '../../src/model/dialects/dialect.ts';
import type { Exchange } from '../../src/model/http/httpTransport.ts';
import { sendOnce } from '../../src/model/http/httpTry.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';

/** A whole attempt with a server that answers this; the chunks are small. */
export async function attemptWith(
  dialect: Dialect,
  bytes: Uint8Array,
  { status = 200, streaming = true, chunk = 65_536, headers = {} as Record<string, string> } = {},
) {
  const config = modelConfigSchema.parse({ model_name: 'm', base_url: 'http://localhost/v1' });
  const send = async (_body: Uint8Array, exchange: Exchange): Promise<Response> => {
    Object.assign(exchange, { status, streaming, headers });
    if (!streaming || status >= 300) exchange.text = new TextDecoder().decode(bytes);
    const pieces = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += chunk) controller.enqueue(bytes.slice(at, at + chunk));
        controller.close();
      },
    });
    return new Response(streaming ? pieces : null, { status });
  };
  const redact = (text: string) => text;
  const endpoint = {
    ...{ dialect, send, config, sent: config, host: 'h' },
    ...{ baseUrl: 'http://localhost/v1', model: 'm', redact },
  };
  return sendOnce(endpoint, new Uint8Array(), undefined);
}
