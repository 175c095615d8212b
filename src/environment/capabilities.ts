/**
 * `capabilities.canKeepWork` is asked before `keepWork`: a place that cannot keep work throws there. Capabilities are data of a kind of environment,
 * asked before one is made, and of each environment. All other methods answer everywhere, and a place that leaves them out is completed here.
 */
import type {
  Capabilities,
  Environment,
  EnvironmentFactory,
  KindCapabilities,
  StartRequest,
} from './environment.ts';

export const NO_CAPABILITIES: KindCapabilities = {
  asUsers: false,
  readsFolders: false,
  canKeepWork: false,
  worksBeside: false,
  listens: false,
  opensHosts: false,
  runsServices: false,
  hasGpus: false,
  bringsPrograms: false,
};

/** The methods that only some places have. */
const METHODS = [
  ['asUsers', 'as'],
  ['readsFolders', 'getFiles'],
  ['canKeepWork', 'keepWork'],
  ['worksBeside', 'beside'],
  ['listens', 'listen'],
] as const satisfies readonly (readonly [keyof Capabilities, keyof Environment])[];

type Own = 'info' | 'execute' | 'templateVars' | 'capturePatch' | 'putFile' | 'getFile' | 'close';

/** An environment as a module of the user's may make it: methods in neither list are completed. */
export type PlainEnvironment = Pick<Environment, Own> & {
  readonly [Method in keyof Environment]?: Environment[Method] | undefined;
};

/** The factory of such a module. */
export type PlainFactory = Pick<EnvironmentFactory, 'kind' | 'close'> &
  Partial<Omit<EnvironmentFactory, 'start'>> & {
    start(request: StartRequest): Promise<PlainEnvironment>;
  };

export function completeEnvironment<Made extends PlainEnvironment>(made: Made): Made & Environment {
  const given: PlainEnvironment = made;
  const can: Partial<Record<keyof Capabilities, boolean>> = {};
  const lacking: Record<string, () => never> = {};
  for (const [capability, method] of METHODS) {
    // A wrapper of a complete environment has all of its methods, as a container has.
    const has = typeof given[method] === 'function' && (given.capabilities?.[capability] ?? true);
    can[capability] = has;
    if (!has)
      lacking[method] = () => {
        throw new Error(`a ${given.info.kind} environment has no ${method}: ask capabilities.${capability}`);
      };
  }
  const capabilities = can as Capabilities;
  const usual = {
    putFiles:
      given.putFiles ??
      (async (files) => {
        for (const { path, content, mode, kind } of files)
          if (kind === undefined) await given.putFile(path, content, mode);
      }),
    putBack: given.putBack ?? (async () => false),
    unkept: given.unkept ?? nothing,
    systemChanges: given.systemChanges ?? nothing,
    leftRunning: given.leftRunning ?? nothing,
    watchWrites: given.watchWrites ?? (async () => ({ refused: 'the environment has no way to tell' })),
    enterPhase: given.enterPhase ?? (() => undefined),
    serviceLogs: given.serviceLogs ?? (async () => []),
    runsBeside: given.runsBeside ?? false,
  } satisfies Partial<Environment>;
  return { ...made, ...usual, ...(lacking as unknown as Environment), capabilities };
}

export const completeFactory = <Made extends PlainFactory>(made: Made): Made & EnvironmentFactory => {
  const given: PlainFactory = made;
  return {
    ...made,
    start: async (request) => completeEnvironment(await given.start(request)),
    prepare: given.prepare ?? (() => undefined),
    holdsWork: given.holdsWork ?? (async () => false),
    systemChanges: given.systemChanges ?? nothing,
    discardWork: given.discardWork ?? nothing,
    awayMs: given.awayMs ?? (() => 0),
  };
};

const nothing = async (): Promise<undefined> => undefined;
