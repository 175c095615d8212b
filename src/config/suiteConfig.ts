/** The `suite:` section: the values that tasks of any suite may have of the machine that runs them. */
import { z } from 'zod';
import { identity } from '../base/fieldClass.ts';
import { modelConfigSchema } from '../model/modelConfig.ts';

export const suiteConfigSchema = z.strictObject({
  env: z
    .preprocess(
      // A text A,B, as -c takes it.
      (value) => (typeof value === 'string' ? value.split(',').map((name) => name.trim()) : value),
      z.array(z.string().regex(/^[A-Za-z_]\w*$/, 'must be the name of a variable')).default([]),
    )
    .meta(identity('variables of this machine that tasks may have, by name')),
  // The list of keys shows one key, which has those of `model:`.
  judge: z
    .unknown()
    .pipe(modelConfigSchema)
    .optional()
    .meta(identity('the model that tests may ask, with the keys of model:')),
});
export type SuiteConfig = z.infer<typeof suiteConfigSchema>;
