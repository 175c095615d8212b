/** The user's keys under `environment.kubernetes:`. */

import { z } from 'zod';
import { identity, runtime } from '../../base/fieldClass.ts';
import { recordOf } from '../../base/isRecord.ts';

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
    .meta(runtime('default: the current one, or the cluster that swebatch runs in')),
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
    .meta(identity('run although the cluster enforces no network policies; not submittable then')),
});
export type ClusterConfig = z.infer<typeof clusterConfigSchema>;

export const clusterOf = (environment: object): ClusterConfig =>
  clusterConfigSchema.parse(recordOf(environment).kubernetes ?? {});

/** Namespaces of the node, and one list of processes for all containers: the keeper would not be the first process of its own. */
const CLOSED_FIELDS = [
  'hostNetwork',
  'hostPID',
  'hostIPC',
  'shareProcessNamespace',
  'automountServiceAccountToken',
  'ephemeralContainers',
  'restartPolicy',
  'activeDeadlineSeconds',
  'enableServiceLinks',
];

/** The prefix of our containers and volumes, beside "main". */
export const RESERVED = 'swebatch-';
const isOurs = (name: unknown): boolean => typeof name === 'string' && name.startsWith(RESERVED);

const listOf = (value: unknown): Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.map(recordOf) : [];

/** One sentence for each; none when the template only adds. */
function podTemplateProblems(template: Readonly<Record<string, unknown>>): string[] {
  const spec = recordOf(template.spec);
  const problems = Object.keys(template)
    .filter((key) => key !== 'metadata' && key !== 'spec')
    .map((key) => `has "${key}": only metadata and spec can be given`);
  for (const field of CLOSED_FIELDS)
    if (spec[field] !== undefined) problems.push(`sets spec.${field}, which swebatch decides`);
  for (const volume of listOf(spec.volumes)) problems.push(...volumeProblems(volume));
  const containers = [
    ...listOf(spec.containers).map((container, i) => [`containers[${i}]`, container] as const),
    ...listOf(spec.initContainers).map((container, i) => [`initContainers[${i}]`, container] as const),
  ];
  for (const [where, container] of containers)
    problems.push(...containerProblems(container).map((problem) => `spec.${where} ${problem}`));
  return problems;
}

function volumeProblems(volume: Readonly<Record<string, unknown>>): string[] {
  const name = String(volume.name ?? '');
  const tokens = listOf(recordOf(volume.projected).sources).some(
    ({ serviceAccountToken }) => serviceAccountToken !== undefined,
  );
  return [
    ...(isOurs(name) ? [`volume "${name}" has a name that swebatch keeps for itself (${RESERVED}…)`] : []),
    ...(volume.hostPath === undefined ? [] : [`volume "${name}" is a folder of the node (hostPath)`]),
    ...(tokens ? [`volume "${name}" holds credentials of the cluster (serviceAccountToken)`] : []),
  ];
}

function containerProblems(container: Readonly<Record<string, unknown>>): string[] {
  const security = recordOf(container.securityContext);
  const own = container.name === 'main' ? ['image', 'command', 'args', 'workingDir', 'lifecycle'] : [];
  const probes = container.name === 'main' ? ['livenessProbe', 'readinessProbe', 'startupProbe'] : [];
  const mounted = listOf(container.volumeMounts).find((mount) => isOurs(mount.name));
  return [
    ...(isOurs(container.name) ? [`has a name that swebatch keeps for itself (${RESERVED}…)`] : []),
    ...(mounted ? [`mounts "${String(mounted.name)}", which is a volume of swebatch`] : []),
    ...(security.privileged === true ? ['is privileged'] : []),
    ...(security.allowPrivilegeEscalation === true ? ['allows its processes to gain privileges'] : []),
    ...(recordOf(security.capabilities).add === undefined ? [] : ['adds capabilities']),
    ...[...own, ...probes]
      .filter((key) => container[key] !== undefined)
      .map((key) => `sets ${key}, which swebatch decides`),
  ];
}
