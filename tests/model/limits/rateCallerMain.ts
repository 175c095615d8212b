// A process of its own that asks a model as often as it may, for some seconds: DATABASE URL TPM SECONDS.

import { modelConfigSchema } from '../../../src/model/modelConfig.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { rateBooks } from '../../../src/run/record/rateBooks.ts';
import { openStore } from '../../../src/store/open.ts';

const [path = '', url, tpm, seconds] = process.argv.slice(2);
const AT_A_TIME = 16;

using store = openStore(path);
const config = modelConfigSchema.parse({
  ...{ model_name: 'fake-1', base_url: url, prices: 'free', tpm: Number(tpm) },
  retry: { base_delay_ms: 500, max_delay_ms: 5_000, max_retries: 20 },
});
const factory = await createModelFactory(config, { apiKey: 'one key', rates: rateBooks(store) });
const ends = new AbortController();
const until = performance.now() + Number(seconds) * 1000;
setTimeout(() => ends.abort(), Number(seconds) * 1000);
const caller = async () => {
  const model = factory.create({ instanceId: 'a__a-1', epoch: 1, earlier: 0 });
  while (performance.now() < until) {
    const content = 'word '.repeat(200 + Math.floor(Math.random() * 1_400));
    await model.query([{ role: 'user', content }], { signal: ends.signal });
  }
};
await Promise.allSettled(Array.from({ length: AT_A_TIME }, caller));
await factory.close();
