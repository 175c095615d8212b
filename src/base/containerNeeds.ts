import type { Network } from './allowList.ts';
import { type VariableValues, type WantedVariables, withVariables } from './hostVariables.ts';
import type { Services } from './services.ts';

/** The wishes of a task for its own containers. An absent field stays as the configuration has it. */
export interface ContainerNeeds {
  /** Working directory of every command; `image` is the one that the image names. */
  readonly cwd?: string | undefined;
  /** The user of the first process, and of commands; `image` is the one that the image names. */
  readonly user?: string | undefined;
  /** The user of the agent's commands, where it is not the image's. */
  readonly worker?: string | undefined;
  readonly network?: Network | undefined;
  /** The network until the agent begins; default: the same. Of use where one of both is a list of hosts. */
  readonly setupNetwork?: Network | undefined;
  /** No agent works in it. */
  readonly verifies?: boolean | undefined;
  /** The network that is the open one; default: that of the configuration. */
  readonly openNetwork?: string | undefined;
  readonly memoryMb?: number | undefined;
  readonly cpus?: number | undefined;
  readonly diskMb?: number | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Variables of this machine, which go over `env` where they are given. */
  readonly variables?: WantedVariables | undefined;
  /** The number of the engine's GPUs. */
  readonly gpus?: number | undefined;
  /** Seconds after which a container may end by itself; never shorter than configured. */
  readonly lifetimeS?: number | undefined;
  /** Run once after the start and before the agent; its failure is that of the environment. */
  readonly startupCommand?: string | undefined;
  /** Absolute folders that are there, and open to every user, before anybody works. */
  readonly openFolders?: readonly string[] | undefined;
  /** The arguments of the image's ENTRYPOINT, which runs beside the work; absent: it does not run. */
  readonly entryArguments?: readonly string[] | undefined;
  /** The program in the place of the image's ENTRYPOINT. */
  readonly entryProgram?: readonly string[] | undefined;
  /** The arguments are a command of their own where the image has no ENTRYPOINT. */
  readonly entryAlone?: boolean | undefined;
  /** Containers beside it, which are there as long as it is, and while its end state is judged. */
  readonly services?: Services | undefined;
}

/** The needs with the variables of this machine that are given to the container, and to the containers beside it. */
export function withGivenVariables<T extends ContainerNeeds>(needs: T, values: VariableValues | undefined) {
  const { services } = needs;
  const containers = services?.containers.map((one) => withVariables(one, values));
  return { ...withVariables(needs, values), ...(containers && { services: { ...services!, containers } }) };
}
