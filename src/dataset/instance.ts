/**
 * One row of a SWE-bench-style dataset, normalised. Field names keep the spelling of the dataset.
 */
import { z } from 'zod';
import { instanceIdSchema } from '../base/text/instanceId.ts';

/** Evaluation columns stay unchanged; grading/ makes a grade spec from them. */
export const instanceSchema = z.object({
  instance_id: instanceIdSchema,
  repo: z.string().default(''),
  base_commit: z.string().default(''),
  problem_statement: z.string(),
  hints_text: z.string().default(''),
  patch: z.string().default(''),
  test_patch: z.string().default(''),
  version: z.string().default(''),
  created_at: z.string().default(''),
  environment_setup_commit: z.string().default(''),
  difficulty: z.string().default(''),
  FAIL_TO_PASS: z.array(z.string()).default([]),
  PASS_TO_PASS: z.array(z.string()).default([]),
  /** Image as the row names it (image, image_name, docker_image), else derived from the id; see imageOf. */
  image: z.string().optional(),
  eval_script: z.string().optional(),
  log_parser: z.string().optional(),
  eval_type: z.enum(['pass_and_fail', 'fail_only']).optional(),
  /** The name of its suite (src/suites/), set by its reader; absent for SWE-bench. */
  kind: z.string().optional(),
  /** Everything else the row carried, untouched. */
  extra: z.record(z.string(), z.unknown()).default({}),
});
export type Instance = z.infer<typeof instanceSchema>;

/** The columns that a plan knows of every row. */
export type InstanceHead = Pick<Instance, 'instance_id' | 'repo' | 'difficulty' | 'image'>;

/** The official name: lower case, every "__" as "_1776_"; a name given by the row is used untouched. */
export function imageOf(instance: Pick<Instance, 'instance_id' | 'image'>): string {
  if (instance.image) return instance.image;
  return `docker.io/swebench/sweb.eval.x86_64.${instance.instance_id}:latest`
    .replaceAll('__', '_1776_')
    .toLowerCase();
}
