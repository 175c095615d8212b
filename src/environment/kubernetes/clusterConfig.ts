/** What a user may set under `environment.kubernetes:`. */
import { z } from 'zod';
import { identity, runtime } from '../../base/fieldClass.ts';
import { recordOf } from '../../base/isRecord.ts';
import { podTemplateProblems } from './podTemplate.ts';

const NAME = /^[a-z0-9][-a-z0-9.]{0,252}$/;
const name = z.string().regex(NAME, 'must be a name as Kubernetes has them: a-z, 0-9, - and .');
/** 250m, 1.5, 512Mi, 2Gi. */
const quantity = z
  .string()
  .regex(/^\d{1,15}(?:\.\d{1,9})?(?:m|[kMGT]|[KMGT]i)?$/, 'must be a quantity such as 500m or 2Gi');

const toleration = z.strictObject({
  key: z.string().optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
});

const podTemplate = z.record(z.string(), z.unknown()).check(({ value, issues }) => {
  for (const message of podTemplateProblems(value)) issues.push({ code: 'custom', input: value, message });
});

export const clusterConfigSchema = z.strictObject({
  context: z
    .string()
    .min(1)
    .optional()
    .meta(
      runtime('context of the kubeconfig; default: its current one, or the cluster that swebatch runs in'),
    ),
  namespace: name.optional().meta(runtime('where pods are made; default: that of the context')),
  node_selector: z.record(z.string(), z.string()).default({}).meta(runtime('labels that a node must have')),
  tolerations: z.array(toleration).default([]).meta(runtime('taints of nodes that pods put up with')),
  pull_secrets: z
    .array(name)
    .default([])
    .meta(runtime('secrets of the namespace with credentials of registries')),
  runtime_class: name.optional().meta(runtime('for example gvisor or kata')),
  cpu_request: quantity
    .optional()
    .meta(runtime('what the scheduler sets aside for a pod; default: its limit')),
  memory_request: quantity
    .optional()
    .meta(runtime('what the scheduler sets aside for a pod; default: its limit')),
  pod_template: podTemplate
    .default({})
    .meta(runtime('metadata and spec that every pod gets too; container "main" is the environment')),
  allow_open_network: z
    .boolean()
    .optional()
    .meta(
      identity('run although the cluster does not enforce network policies; the run is then not submittable'),
    ),
});
export type ClusterConfig = z.infer<typeof clusterConfigSchema>;

export const clusterOf = (environment: object): ClusterConfig =>
  clusterConfigSchema.parse(recordOf(environment).kubernetes ?? {});
