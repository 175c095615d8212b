// A gateway with one open session behind a port of this machine, and what its ledger and its record were told.

import type {
  Gateway,
  GatewayCall,
  GatewaySession,
  SessionSpec,
} from '../../../src/agent/gateway/gateway.ts';
import { gatewayConfigSchema } from '../../../src/agent/gateway/gatewayConfig.ts';
import { createGateway, type GatewayOptions } from '../../../src/agent/gateway/httpGateway.ts';
import { openLocalDoorway } from '../../../src/environment/local/localFactory.ts';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import type { CallListener, CallRecord, ModelFactory } from '../../../src/model/model.ts';
import { type ModelConfig, modelConfigSchema } from '../../../src/model/modelConfig.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';

export const REAL_KEY = 'real-provider-key-0123456789';

export interface Bench {
  readonly url: string;
  readonly session: GatewaySession;
  readonly gateway: Gateway;
  readonly rows: CallRecord[];
  readonly calls: GatewayCall[];
  readonly notes: string[];
  /** Another attempt of the same run. */
  another(): Promise<{ session: GatewaySession; url: string }>;
  stop(): Promise<void>;
}

export interface BenchOptions {
  readonly providerUrl: string;
  readonly dialect: DialectName;
  readonly model?: Partial<ModelConfig>;
  readonly limits?: Partial<SessionSpec['limits']>;
  readonly config?: Record<string, unknown>;
  readonly wanted?: CallListener['wanted'];
  readonly options?: GatewayOptions;
}

/** As each dialect has its base URL: the version is a part of it but for Anthropic's. */
const BASE: Readonly<Record<DialectName, string>> = {
  chat: '/v1',
  responses: '/v1',
  messages: '',
  gemini: '/v1beta',
};

export async function bench(options: BenchOptions): Promise<Bench> {
  const { providerUrl, dialect, limits, config, wanted } = options;
  const factory: ModelFactory = await createModelFactory(
    modelConfigSchema.parse({
      model_name: 'm-1',
      dialect,
      base_url: `${providerUrl}${BASE[dialect]}`,
      prices: { input: 1, output: 10 },
      retry: { base_delay_ms: 1, max_delay_ms: 2 },
      ...options.model,
    }),
    { apiKey: REAL_KEY },
  );
  const gateway = createGateway(options.options);
  const rows: CallRecord[] = [];
  const calls: GatewayCall[] = [];
  const notes: string[] = [];
  const doors: { close(): Promise<void> }[] = [];
  const another = async () => {
    const session = gateway.open({
      attempt: 'test__test-1',
      model: factory.create({ instanceId: 'test__test-1', epoch: 1 }),
      limits: { steps: 0, costDollars: 0, tokens: 0, ...limits },
      config: gatewayConfigSchema.parse(config ?? {}),
      listener: () => ({
        ...(wanted && { wanted }),
        began: () => undefined,
        ended: (row) => void rows.push(row),
      }),
      onCall: (call) => void calls.push(call),
      onNote: (text) => void notes.push(text),
    });
    const door = await openLocalDoorway(session.handle);
    doors.push(door);
    return { session, url: `http://127.0.0.1:${door.port}` };
  };
  const { session, url } = await another();
  return {
    url,
    session,
    gateway,
    rows,
    calls,
    notes,
    another,
    async stop() {
      await gateway.close();
      await Promise.all(doors.map((door) => door.close()));
      await factory.close();
    },
  };
}
