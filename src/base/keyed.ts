/**
 * Objects whose keys somebody else chose: ids of instances, names of tests and rewards. `__proto__` is a key of them like any other, and
 * "constructor" is none unless it stands there.
 */
import { z } from 'zod';
import { isRecord } from './isRecord.ts';

/** A record that keeps the key `__proto__`, in an object without a "constructor"; z.record does neither. */
export const keyed = <T>(value: z.ZodType<T>, key: z.ZodType<string> = z.string()) =>
  z.custom<object>(isRecord, 'must be an object').transform((given, context): Record<string, T> => {
    const read = Object.create(null) as Record<string, T>;
    for (const [name, inner] of Object.entries(given)) {
      const found = [key.safeParse(name), value.safeParse(inner)] as const;
      for (const { error } of found)
        for (const issue of error?.issues ?? [])
          context.addIssue({ ...issue, code: 'custom', path: [name, ...issue.path] });
      if (found[1].success) read[name] = found[1].data;
    }
    return read;
  });
