/** What a user's pod template may not say: each of these would open what an environment keeps closed. */
import { recordOf } from '../../base/isRecord.ts';

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

/** What containers and volumes of ours are called, beside "main". */
export const RESERVED = 'swebatch-';
const isOurs = (name: unknown): boolean => typeof name === 'string' && name.startsWith(RESERVED);

const listOf = (value: unknown): Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.map(recordOf) : [];

/** One sentence for each; none when the template only adds. */
export function podTemplateProblems(template: Readonly<Record<string, unknown>>): string[] {
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
