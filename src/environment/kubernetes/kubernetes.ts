/** Pods of a Kubernetes cluster. */
import { NO_CAPABILITIES } from '../capabilities.ts';
import type { EnvironmentKind } from '../environmentKind.ts';
import { clusterConfigSchema, clusterOf } from './clusterConfig.ts';

export const kubernetes: EnvironmentKind = {
  name: 'kubernetes',
  title: 'Kubernetes',
  ownKeys: clusterConfigSchema,
  inImages: true,
  onThisMachine: false,
  engines: 'none',
  grades: true,
  capabilities: {
    ...NO_CAPABILITIES,
    readsFolders: true,
    worksBeside: true,
    listens: true,
    runsServices: true,
    bringsPrograms: true,
  },
  async create(config, { quietEnv, snapshot, capAdd, program, listens, graceMs, onWarning }) {
    const { createKubernetesFactory } = await import('./kubernetesFactory.ts');
    return createKubernetesFactory(config, {
      quietEnv,
      snapshot,
      capAdd,
      program,
      relay: listens,
      graceMs,
      onWarning,
    });
  },
  async taskRefusal(needs, { network }) {
    const { userProblem } = await import('./podManifest.ts');
    const user = userProblem(needs.worker ?? needs.user);
    if (user !== undefined) return `its agent cannot be whom it names: ${user}`;
    const { serviceRefusals } = await import('./podServices.ts');
    const reasons = serviceRefusals(needs, network);
    return reasons.length === 0
      ? undefined
      : `its services are no containers of one pod: ${reasons.join('; ')}`;
  },
  async findings(arms) {
    const { clusterFindings } = await import('./networkCheck.ts');
    return clusterFindings(arms);
  },
  async reap(environments, how) {
    const { reapClusters } = await import('./podReaper.ts');
    return reapClusters(environments.map(clusterOf), how);
  },
};
