/** Which dialect a configuration means. */
import { cloudOf } from '../clouds/chooseCloud.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { dialectNameOf } from '../names.ts';
import type { Dialect } from './dialect.ts';
import { DIALECTS } from './dialects.ts';

export async function dialectOf(
  config: Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect'>,
): Promise<Dialect> {
  const dialect = await DIALECTS[dialectNameOf(config)].load();
  return cloudOf(config)?.dialect(dialect) ?? dialect;
}
