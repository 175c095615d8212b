// Environments in pods of the test cluster, whose factories are closed afterwards.
import type { Environment, EnvironmentFactory, StartRequest } from '../../src/environment/environment.ts';
import type { EnvironmentConfig } from '../../src/environment/environmentConfig.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import {
  createKubernetesFactory,
  type KubernetesOptions,
} from '../../src/environment/kubernetes/kubernetesFactory.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { repositoryImage } from '../support/dockerEnvironment.ts';

export interface StartInPod {
  readonly config?: InPods;
  readonly image?: string;
  readonly setup?: string;
  readonly request?: Partial<StartRequest>;
  readonly options?: KubernetesOptions;
}

let attempts = 0;

type InPods = Partial<EnvironmentConfig> & { kubernetes?: object };

export function testCluster(defaults: InPods = {}) {
  const factories: EnvironmentFactory[] = [];
  const open: Environment[] = [];
  const factory = async (config: InPods = {}, options: KubernetesOptions = {}) => {
    const small = { context: undefined, cpu_request: '10m', memory_request: '16Mi' };
    const parsed = environmentConfigSchema.parse({
      ...{ environment_class: 'kubernetes', pull: 'never', memory: '512m', network: 'bridge' },
      ...defaults,
      ...config,
      kubernetes: { ...small, ...defaults.kubernetes, ...config.kubernetes },
    });
    const made = await createKubernetesFactory(parsed, options);
    factories.push(made);
    return made;
  };
  return {
    factory,
    async start({ config, image, setup, request, options }: StartInPod = {}): Promise<Environment> {
      attempts += 1;
      const environment = await (await factory(config, options)).start({
        instanceId: 'test__test-1',
        image: image ?? (await repositoryImage()),
        owner: currentOwner('test-run', `${process.pid}.${attempts}`),
        ...(setup ? { startupCommand: setup } : {}),
        ...request,
      });
      open.push(environment);
      return environment;
    },
    async stop() {
      await Promise.all(open.splice(0).map((environment) => environment.close()));
      await Promise.all(factories.splice(0).map((one) => one.close()));
    },
  };
}
