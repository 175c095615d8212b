/** A resumed run asks the addresses that it recorded. Variables that name others now are told of, and change nothing. */
import { recordOf } from '../../base/isRecord.ts';
import { shownAddress } from '../../model/describe.ts';
import { baseUrlOf, PROVIDERS } from '../../model/names.ts';
import { settleModel } from '../../model/settleModel.ts';
import { type RunRow, storedManifest } from '../../store/records/runs.ts';
import type { Caller, Variables } from '../caller.ts';
import type { ArmConfig } from './planRecord.ts';

const ADDRESSES: ReadonlySet<string> = new Set(PROVIDERS.flatMap(({ baseUrls }) => baseUrls));

/** Keys stay, addresses go: a recorded arm without one asks its maker. */
export const withoutAddresses = (env: Variables): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !ADDRESSES.has(name)));

export function tellOtherAddress(
  run: RunRow,
  arms: readonly Pick<ArmConfig, 'name' | 'model' | 'agent'>[],
  { env, tell }: Caller,
): void {
  const facts = recordOf(storedManifest(run).models);
  for (const { name, model, agent } of arms) {
    const { base_url: recorded, ...open } = model;
    // What a configuration says counts more than a variable, then as now.
    if (recorded !== undefined && recordOf(facts[name]).endpoint_from === undefined) continue;
    const now = settleModel(open, { env, litellm: agent.compat !== null });
    if (!now.ok || now.addressFrom === undefined || now.model.base_url === recorded) continue;
    const [is, named] = [baseUrlOf(model) ?? '', now.model.base_url ?? ''].map(shownAddress);
    tell({
      level: 'note',
      text: `arm ${name} goes on with ${is}, the address that the run recorded; $${now.addressFrom} names ${named} now, which only a new run would ask`,
    });
  }
}
