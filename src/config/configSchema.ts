/** A whole configuration from the schemas of its parts. */
import { z } from 'zod';
import { agentConfigSchema } from '../agent/agentConfig.ts';
import { gatewayConfigSchema } from '../agent/gateway/gatewayConfig.ts';
import { identity } from '../base/fieldClass.ts';
import { environmentConfigSchema } from '../environment/environments.ts';
import { imagesConfigSchema } from '../environment/places/imagesConfig.ts';
import { gradingConfigSchema } from '../grading/gradingConfig.ts';
import { modelConfigSchema } from '../model/modelConfig.ts';
import { datasetConfigSchema, runConfigSchema } from './runConfig.ts';

/** What an arm may set; everything else comes from the sections of the configuration. */
const armSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ . -')
    .optional()
    .describe('default: the model name'),
  agent: z.record(z.string(), z.unknown()).optional(),
  environment: z.record(z.string(), z.unknown()).optional(),
  model: z.record(z.string(), z.unknown()).optional(),
  gateway: z.record(z.string(), z.unknown()).optional(),
});

export const SECTIONS = {
  agent: agentConfigSchema,
  environment: environmentConfigSchema,
  model: modelConfigSchema,
  run: runConfigSchema,
  grading: gradingConfigSchema,
  images: imagesConfigSchema,
  dataset: datasetConfigSchema,
  gateway: gatewayConfigSchema,
} as const;

export const configSchema = z.strictObject({
  agent: agentConfigSchema.prefault({}),
  environment: environmentConfigSchema.prefault({}),
  model: modelConfigSchema.prefault({}),
  run: runConfigSchema.prefault({}),
  grading: gradingConfigSchema.prefault({}),
  images: imagesConfigSchema.prefault({}),
  dataset: datasetConfigSchema.prefault({}),
  // Absent where nobody sets it, so that recorded runs and exported files of other agents stay as they are.
  gateway: gatewayConfigSchema.optional(),
  arms: z.array(armSchema).default([]).meta(identity('several models or configurations in one run')),
});
export type Config = z.infer<typeof configSchema>;

/** The schema below optional, default and prefault wrappers. */
function inner(schema: z.core.$ZodType): z.core.$ZodType {
  const { def } = schema._zod as unknown as { def: { type: string; innerType?: z.core.$ZodType } };
  return def.innerType && ['optional', 'default', 'prefault', 'nullable'].includes(def.type)
    ? inner(def.innerType)
    : schema;
}
const shapeOf = (schema: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> | null => {
  const { def } = inner(schema)._zod as unknown as {
    def: { type: string; shape?: Record<string, z.core.$ZodType> };
  };
  return def.type === 'object' ? (def.shape ?? null) : null;
};

/** Schema of a dotted path, or null where there is none. */
export function schemaAt(path: readonly string[]): z.core.$ZodType | null {
  let schema: z.core.$ZodType | undefined = configSchema;
  for (const key of path) {
    const shape: Readonly<Record<string, z.core.$ZodType>> | null = schema ? shapeOf(schema) : null;
    schema = shape && Object.hasOwn(shape, key) ? shape[key] : undefined;
  }
  return schema ?? null;
}

export const keysAt = (path: readonly string[]): string[] => {
  const schema = schemaAt(path);
  return Object.keys((schema && shapeOf(schema)) ?? {});
};

export const isNumberAt = (path: readonly string[]): boolean => {
  const schema = schemaAt(path);
  return (
    schema !== null && (inner(schema)._zod as unknown as { def: { type: string } }).def.type === 'number'
  );
};

/** Dotted paths of everything that can be set, down to what is not an object of known keys. */
export function allPaths(path: readonly string[] = []): string[] {
  return keysAt(path).flatMap((key) => {
    const here = [...path, key];
    return keysAt(here).length > 0 ? allPaths(here) : [here.join('.')];
  });
}
