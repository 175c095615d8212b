/** From the `model:` section of a config to a factory of models. The one place that knows every kind. */
import { orPackaged } from '../base/files/packageFile.ts';
import { importUserModule, isModulePath } from '../userModule.ts';
import { cloudOf, dialectOf } from './clouds/chooseCloud.ts';
import type { RequestStyle } from './dialects/dialect.ts';
import type { ProxySettings } from './http/proxySettings.ts';
import { type Clock, systemClock } from './limits/clock.ts';
import type { RateBook } from './limits/sharedRate.ts';
import {
  type Model,
  ModelConfigError,
  type ModelFactory,
  type ModelForAttempt,
  modelFailure,
} from './model.ts';
import type { ModelConfig } from './modelConfig.ts';
import { withReferences } from './namedCredentials.ts';
import { createReplayFactory, type Divergence, type ReplaySource } from './offline/replayed.ts';
import { createScriptedFactory } from './offline/scripted.ts';
import { userModel } from './userModel.ts';

interface ModelDeps {
  /** The key itself: the CLI alone reads the environment. */
  readonly apiKey?: string | undefined;
  /** Values of variables that parameters refer to (`env:NAME`). */
  readonly variable?: (name: string) => string | undefined;
  /** Strings that must appear in no text, beside the key. */
  readonly secrets?: readonly string[];
  readonly proxy?: ProxySettings;
  /** Opens the recording that `replay:RUN` names; rejects when there is none. */
  readonly fetchReplay?: (run: string) => Promise<ReplaySource>;
  readonly onDivergence?: (divergence: Divergence) => void;
  /** Default: own. */
  readonly requestStyle?: RequestStyle;
  /** The folder at which relative paths start. */
  readonly cwd?: string;
  readonly clock?: Clock;
  /** The book that processes with the same key share, by a name of key, address and model. */
  readonly rates?: (account: string) => RateBook;
}

/** The exports of a module named by `model_class`. `createModel` is called for each attempt. */
export interface ModelModule {
  createModel(parts: { config: ModelConfig; attempt: ModelForAttempt; apiKey: string | undefined }): Model;
  /** The model costs nothing, so no price is asked for. */
  readonly free?: boolean;
  close?(): Promise<void>;
}

async function moduleFactory(config: ModelConfig, deps: ModelDeps): Promise<ModelFactory> {
  let loaded: Partial<ModelModule>;
  try {
    loaded = await importUserModule(
      { key: 'model.model_class', what: 'model' },
      config.model_class,
      deps.cwd ?? '',
    );
  } catch (error) {
    throw new ModelConfigError((error as Error).message);
  }
  const { createModel, close } = loaded;
  if (typeof createModel !== 'function')
    throw new ModelConfigError(
      `model.model_class: ${config.model_class} exports no createModel; docs/extension.md has an example`,
    );
  return {
    name: config.model_name ?? config.model_class,
    free: loaded.free === true || config.prices === 'free',
    create: (attempt) =>
      userModel({ what: 'model', path: config.model_class }, () =>
        createModel({ config, attempt, apiKey: deps.apiKey }),
      ),
    close: async () => close?.(),
  };
}

/** The model of an agent that asks none. */
const noModel = (name: string): ModelFactory => ({
  name,
  free: true,
  create: () => ({
    name,
    templateVars: () => ({}),
    query: async () => modelFailure('PROVIDER_NOT_CONFIGURED', `${name} is no model`),
  }),
  close: async () => {},
});

/** Rejects with ModelConfigError when the configuration cannot work; that is before anything is started or paid. */
export async function createModelFactory(config: ModelConfig, deps: ModelDeps = {}): Promise<ModelFactory> {
  const clock = deps.clock ?? systemClock;
  const name = config.model_name ?? '';
  if (name.startsWith('scripted:')) {
    const path = orPackaged(name.slice('scripted:'.length), deps.cwd);
    return createScriptedFactory({ name, path, latencyMs: config.latency_ms, clock });
  }
  if (name.startsWith('replay:')) {
    const { fetchReplay, onDivergence } = deps;
    if (!fetchReplay) throw new ModelConfigError(`${name}: there is no recorded run to replay`);
    const source = await fetchReplay(name.slice('replay:'.length));
    return createReplayFactory({
      name,
      source,
      clock,
      ...(config.latency_ms === undefined ? {} : { latencyMs: config.latency_ms }),
      ...(onDivergence ? { onDivergence } : {}),
    });
  }
  if (name.startsWith('none:')) return noModel(name);
  const variable = deps.variable ?? (() => undefined);
  const { kwargs, secrets } = withReferences(config.model_kwargs, variable);
  const sent = { ...config, model_kwargs: kwargs };
  if (config.model_class === 'openai') {
    // Loaded only when needed: the client and undici take memory that scripted runs need not pay.
    const { createHttpFactory } = await import('./http/httpModel.ts');
    const cloud = await cloudOf(config);
    const auth = await cloud?.createAuth(config, deps.apiKey);
    await cloud?.prepare?.();
    return createHttpFactory({
      dialect: await dialectOf(config),
      config,
      sent,
      apiKey: deps.apiKey,
      variable,
      auth,
      readEvents: cloud?.readEvents,
      ...(deps.requestStyle ? { style: deps.requestStyle } : {}),
      secrets: [...(deps.secrets ?? []), ...secrets],
      ...(deps.proxy ? { proxy: deps.proxy } : {}),
      ...(deps.rates ? { rates: deps.rates } : {}),
      clock,
    });
  }
  if (isModulePath(config.model_class)) return moduleFactory(sent, deps);
  throw new ModelConfigError(
    `model_class "${config.model_class}" is not supported: use openai (any OpenAI-compatible endpoint, with base_url), or the path of a module that exports createModel`,
    'PROVIDER_NOT_SUPPORTED',
  );
}
