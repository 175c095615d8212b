/** What a task asks of its own containers. What is absent stays as the configuration has it. */
export interface ContainerNeeds {
  /** Working directory of every command; `image` is the one that the image names. */
  readonly cwd?: string;
  readonly user?: string;
  readonly network?: 'none' | 'public';
  readonly memoryMb?: number;
  readonly cpus?: number;
  readonly diskMb?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Seconds after which a container may end by itself; never shorter than configured. */
  readonly lifetimeS?: number;
  /** Run once after the start and before the agent; its failure is that of the environment. */
  readonly startupCommand?: string;
}
