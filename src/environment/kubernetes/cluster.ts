/** The cluster that a configuration names: the questions to its API server, each with a limit. The package of the client is loaded on demand. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { KubeConfig, V1Pod } from '@kubernetes/client-node';
import { parse } from 'yaml';
import { z } from 'zod';
import { startTimer, within } from '../../base/async/timer.ts';
import { recordOf } from '../../base/isRecord.ts';
import { isMissingPackage } from '../../base/missingPackage.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError, type EnvironmentErrorCode } from '../environment.ts';
import type { ClusterConfig } from './clusterConfig.ts';

export interface Cluster {
  readonly context: string;
  readonly namespace: string;
  readonly server: string;
  /** The credentials are those of the pod that this process runs in. */
  readonly inside: boolean;
  createPod(pod: V1Pod): Promise<V1Pod>;
  readPod(name: string): Promise<V1Pod>;
  deletePod(name: string): Promise<void>;
  /** Names the image of one container of a pod. */
  setImage(pod: string, container: string, image: string): Promise<void>;
  /** The end of what a container printed. */
  logOf(pod: string, container: string, lines: number): Promise<string>;
  listPods(labels: string): Promise<V1Pod[]>;
  /** The newest words of the cluster about a pod. */
  eventsOf(pod: string): Promise<string[]>;
  /** Pod labels that a policy of the namespace names, which denies what it does not allow; for `doctor`. */
  policies(): Promise<readonly PolicyFacts[]>;
  /** Whether these credentials may do that in the namespace. */
  may(right: Right): Promise<boolean>;
  version(): Promise<string>;
  exec(address: ExecAddress, onData: (stream: number, data: Buffer) => void): Promise<ExecSocket>;
}

export interface Right {
  readonly verb: string;
  readonly resource: string;
  readonly group?: string;
  readonly subresource?: string;
}

export interface PolicyFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly types: readonly string[];
  /** The policy lets something through. */
  readonly allows: boolean;
}

const PACKAGE = '@kubernetes/client-node';

/** Nothing says where the cluster is, or what says it cannot be used: a person has to change it. */
export class ClusterConfigError extends Error {
  override readonly name = 'ClusterConfigError';
  readonly fix: string;
  constructor(message: string, fix = 'correct environment.kubernetes or the kubeconfig') {
    super(message);
    this.fix = fix;
  }
}

type Client = typeof import('@kubernetes/client-node');

async function loadClient() {
  try {
    const [client, sockets] = await Promise.all([
      import('@kubernetes/client-node'),
      import('@kubernetes/client-node/dist/web-socket-handler.js'),
    ]);
    return { client, sockets };
  } catch (error) {
    if (!isMissingPackage(error)) throw error;
    const fix = `npm install ${PACKAGE}`;
    const missing = `environment_class kubernetes needs a package that is not installed: ${PACKAGE}`;
    throw new ClusterConfigError(`${missing}; ${fix}`, fix);
  }
}

function loadConfig(client: Client, { context }: Pick<ClusterConfig, 'context'>): KubeConfig {
  const { config, takeTokenFile } = kubeConfigWithTokenFiles(client);
  try {
    config.loadFromDefault();
  } catch (error) {
    throw new ClusterConfigError(`the kubeconfig cannot be read: ${errorText(error)}; correct $KUBECONFIG`);
  }
  if (context !== undefined) {
    const known = config.getContexts().map(({ name }) => name);
    if (!known.includes(context))
      throw new ClusterConfigError(
        `the kubeconfig has no context "${context}"; it has ${known.join(', ') || 'none'}`,
      );
    config.setCurrentContext(context);
  }
  takeTokenFile();
  // The package's default where it finds nothing.
  const nothing =
    config.getCurrentContext() === 'loaded-context' &&
    config.getCurrentCluster()?.server === 'http://localhost:8080';
  if (nothing || !config.getCurrentCluster())
    throw new ClusterConfigError(
      'no cluster is known: set KUBECONFIG, write ~/.kube/config, or run inside of a cluster with a ServiceAccount',
    );
  return config;
}

const ANSWER_MS = 30_000;

async function answer<T>(asked: Promise<T>): Promise<T> {
  const NONE = Symbol('none');
  const late = within(
    asked.then((value) => ({ value })),
    ANSWER_MS,
  );
  const got = (await late) ?? NONE;
  if (got === NONE) throw new Error(`no answer within ${ANSWER_MS / 1000} s`);
  return (got as { value: T }).value;
}

/** Rejects with ClusterConfigError when no cluster can be asked; asks none. */
export async function connectCluster(given: ClusterConfig): Promise<Cluster> {
  const { client, sockets } = await loadClient();
  const config = loadConfig(client, given);
  const core = config.makeApiClient(client.CoreV1Api);
  const networking = config.makeApiClient(client.NetworkingV1Api);
  const authorization = config.makeApiClient(client.AuthorizationV1Api);
  const versions = config.makeApiClient(client.VersionApi);
  const context = config.getCurrentContext();
  const namespace = given.namespace ?? config.getContextObject(context)?.namespace ?? 'default';
  return {
    context,
    namespace,
    server: config.getCurrentCluster()!.server,
    inside: context === 'inClusterContext',
    createPod: (body) => answer(core.createNamespacedPod({ namespace, body })),
    readPod: (name) => answer(core.readNamespacedPod({ namespace, name })),
    async deletePod(name) {
      await answer(core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }));
    },
    async setImage(name, container, image) {
      const body = { spec: { containers: [{ name: container, image }] } };
      // Containers are told apart by their names in this form alone.
      const form = client.setHeaderOptions('Content-Type', client.PatchStrategy.StrategicMergePatch);
      await answer(core.patchNamespacedPod({ name, namespace, body }, form));
    },
    logOf: (name, container, tailLines) =>
      answer(core.readNamespacedPodLog({ name, namespace, container, tailLines, limitBytes: LOG_BYTES })),
    async listPods(labelSelector) {
      return (await answer(core.listNamespacedPod({ namespace, labelSelector }))).items;
    },
    async eventsOf(pod) {
      const fieldSelector = `involvedObject.name=${pod}`;
      const { items } = await answer(core.listNamespacedEvent({ namespace, fieldSelector }));
      return items.map(({ reason, message }) => `${reason ?? ''}: ${message ?? ''}`).slice(-EVENTS);
    },
    async policies() {
      const { items } = await answer(networking.listNamespacedNetworkPolicy({ namespace }));
      return items.map(({ metadata, spec }) => ({
        name: metadata?.name ?? '',
        labels: spec?.podSelector?.matchLabels ?? {},
        types: spec?.policyTypes ?? [],
        allows: (spec?.egress?.length ?? 0) + (spec?.ingress?.length ?? 0) > 0,
      }));
    },
    async may({ verb, resource, group = '', subresource }) {
      const asked = { namespace, verb, resource, group, ...(subresource !== undefined && { subresource }) };
      const body = { spec: { resourceAttributes: asked } };
      const { status } = await answer(authorization.createSelfSubjectAccessReview({ body }));
      return status?.allowed ?? false;
    },
    async version() {
      return (await answer(versions.getCode())).gitVersion;
    },
    exec: (address, onData) => openSocket(sockets, config, namespace, address, onData),
  };
}

const EVENTS = 6;
const LOG_BYTES = 32 * 2 ** 20;

export interface ExecAddress {
  readonly pod: string;
  readonly container: string;
  readonly argv: readonly string[];
  readonly stdin: boolean;
}

/** The used part of the socket. */
interface ExecSocket {
  /** `left`: the machine has taken it, or the socket is closed. */
  send(data: Buffer, left?: () => void): void;
  pause(): void;
  resume(): void;
  terminate(): void;
  /** Called once. */
  onClose(closed: () => void): void;
}

const HANDSHAKE_MS = 20_000;
const BEAT_MS = 10_000;
/** Three beats without an answer. */
const SILENT_MS = 35_000;

/** The package does not hand it out by its main entry. */
type Sockets = typeof import('@kubernetes/client-node/dist/web-socket-handler.js');

function execPath(namespace: string, { pod, container, argv, stdin }: ExecAddress): string {
  const query = new URLSearchParams({
    stdout: 'true',
    stderr: 'true',
    tty: 'false',
    stdin: String(stdin),
    container,
  });
  for (const word of argv) query.append('command', word);
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec?${query}`;
}

async function openSocket(
  sockets: Sockets,
  config: KubeConfig,
  namespace: string,
  address: ExecAddress,
  onData: (stream: number, data: Buffer) => void,
): Promise<ExecSocket> {
  // The package knows no limit of a handshake; the socket beneath it does.
  const bounded: KubeConfig = Object.create(config, {
    applyToHTTPSOptions: {
      value: async (options: Parameters<KubeConfig['applyToHTTPSOptions']>[0]) => {
        await config.applyToHTTPSOptions(options);
        Object.assign(options, { handshakeTimeout: HANDSHAKE_MS });
      },
    },
  }) as KubeConfig;
  // By default the end of a stream would close that of this process.
  const unused = { end: () => undefined, pause: () => undefined };
  const streams = { stdin: unused, stdout: unused, stderr: unused } as never;
  const handler = new sockets.WebSocketHandler(bounded, undefined, streams);
  let heard = () => {};
  const connecting = handler.connect(execPath(namespace, address), null, (stream, data) => {
    heard();
    onData(stream, data);
    return true;
  });
  const socket = await connecting.catch((event: unknown) => {
    // The package rejects with the socket's event, whose error is beside it.
    throw new Error(String(recordOf(event).message ?? event), { cause: recordOf(event).error });
  });
  let paused = false;
  const silence = startTimer(SILENT_MS, () => socket.terminate(), { idle: true });
  heard = () => silence.restart();
  socket.on('pong', heard);
  const beat = setIntervalOf(BEAT_MS, () => {
    // While nothing is read, no answer is seen either.
    if (paused) silence.restart();
    else socket.ping();
  });
  const closed = Promise.withResolvers<void>();
  for (const event of ['close', 'error'] as const)
    socket.on(event, () => {
      silence.cancel();
      beat.cancel();
      closed.resolve();
    });
  if (socket.readyState !== socket.OPEN) closed.resolve();
  return {
    send: (data, left = () => undefined) => socket.send(data, () => left()),
    pause() {
      paused = true;
      socket.pause();
    },
    resume() {
      paused = false;
      silence.restart();
      socket.resume();
    },
    terminate: () => socket.terminate(),
    onClose: (then) => void closed.promise.then(then),
  };
}

/** Each time from the one before, until it is cancelled. */
function setIntervalOf(ms: number, tick: () => void): { cancel(): void } {
  let over = false;
  let timer = startTimer(ms, next, { idle: true });
  function next(): void {
    if (over) return;
    tick();
    timer = startTimer(ms, next, { idle: true });
  }
  return {
    cancel() {
      over = true;
      timer.cancel();
    },
  };
}

const fileSchema = z.looseObject({
  users: z
    .array(
      z.looseObject({
        name: z.string(),
        user: z.looseObject({ tokenFile: z.string().optional() }).nullish(),
      }),
    )
    .nullish(),
});

/** The absolute path that the first file naming this user gives; relative ones are relative to that file. */
export function tokenFileOf(user: string, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    if (!existsSync(path)) continue;
    const read = fileSchema.safeParse(parse(readFileSync(path, 'utf8')));
    const found = read.success ? read.data.users?.find(({ name }) => name === user) : undefined;
    if (found) return found.user?.tokenFile && resolve(dirname(path), found.user.tokenFile);
  }
  return undefined;
}

/**
 * A KubeConfig that reads `tokenFile` too, from the first file of $KUBECONFIG or from ~/.kube/config. The package reads the token anew each minute,
 * as it does inside of a cluster.
 */
function kubeConfigWithTokenFiles(client: Pick<typeof import('@kubernetes/client-node'), 'KubeConfig'>) {
  const config = new client.KubeConfig();
  const load = config.loadFromFile.bind(config);
  const paths: string[] = [];
  config.loadFromFile = (file, options) => {
    paths.push(file);
    load(file, options);
  };
  return {
    config,
    /** After a context was chosen. */
    takeTokenFile(): void {
      const user = config.getCurrentUser();
      // Credentials beside the token file come first.
      if (!user || user.token || user.authProvider || user.exec) return;
      const tokenFile = tokenFileOf(user.name, paths);
      if (tokenFile === undefined) return;
      const shared = user as { authProvider?: unknown };
      shared.authProvider = { name: 'tokenFile', config: { tokenFile } };
    },
  };
}

// The meaning of an answer of the API server that is no success. Pure: the tests read recorded answers.

export type ApiMeaning =
  /** The object is not there. */
  | 'gone'
  /** The namespace itself is gone or going. */
  | 'namespace_gone'
  /** The same name is taken, or what was read is too old: ask anew. */
  | 'again'
  /** A quota is used up: room comes when others end. */
  | 'no_room'
  /** The server does not answer, or not now. */
  | 'away'
  | 'credentials'
  | 'forbidden'
  | 'refused';

/** An error of `@kubernetes/client-node`: a status and a body, or an error of the network. */
export function readApiFault(error: unknown) {
  const { code, body } = recordOf(error) as { code?: unknown; body?: unknown };
  if (typeof code !== 'number')
    return { meaning: 'away' as const, status: undefined, text: networkText(error) };
  const answer = statusOf(body);
  const text = answer.message || `the API server answered ${code}`;
  return { meaning: meaningOf(code, answer), status: code, text };
}

/** fetch says "fetch failed"; its cause says why. */
const networkText = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return errorText(cause) || 'no answer';
};

interface Answer {
  readonly reason: string;
  readonly message: string;
  readonly kind: string;
}

/** A `Status` object, as JSON text or read already. A proxy before the server answers with a page. */
function statusOf(body: unknown): Answer {
  let read: unknown = body;
  if (typeof body === 'string')
    try {
      read = JSON.parse(body);
    } catch {
      return { reason: '', kind: '', message: body.slice(0, 300).trim() };
    }
  const { reason, message, details } = recordOf(read);
  const { kind } = recordOf(details);
  return {
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
    kind: typeof kind === 'string' ? kind : '',
  };
}

function meaningOf(status: number, { reason, message, kind }: Answer): ApiMeaning {
  if (status === 401) return 'credentials';
  if (status === 403) {
    if (/exceeded quota|insufficient quota/i.test(message)) return 'no_room';
    if (/because it is being terminated/i.test(message)) return 'namespace_gone';
    // Whatever a rule or a webhook refuses, no right of ours would change.
    return /denied the request|violates PodSecurity|unable to validate against any|is forbidden: (?:exceeded|maximum|minimum)/i.test(
      message,
    )
      ? 'refused'
      : 'forbidden';
  }
  if (status === 404) return kind === 'namespaces' ? 'namespace_gone' : 'gone';
  if (status === 409) {
    // The quota's own record was written by two at once.
    return 'again';
  }
  if (status === 410 || reason === 'Expired') return 'again';
  if (status === 429 || status >= 500) return 'away';
  return 'refused';
}

const CODES: Readonly<Record<ApiMeaning, EnvironmentErrorCode>> = {
  gone: 'died',
  namespace_gone: 'start_failed',
  again: 'start_failed',
  no_room: 'start_failed',
  away: 'daemon_lost',
  credentials: 'daemon_lost',
  forbidden: 'start_failed',
  refused: 'start_failed',
};

const FIXES: Partial<Record<ApiMeaning, string>> = {
  namespace_gone: 'make the namespace again, with its rights and its network policy',
  credentials: 'the token may have expired: log in to the cluster again and resume',
  // A namespace that was removed took the rights in it along, and the account may not ask for the namespace itself.
  forbidden:
    'give the account the rights of docs/kubernetes/setup, or make the namespace again with them if it was removed',
  refused: 'a rule of the cluster refuses the pod: see environment.kubernetes.pod_template',
  away: 'the API server does not answer; resume when it does',
};

/** `what`: what was being done, as in "making a pod". */
export function apiError(error: unknown, what: string): EnvironmentError {
  const { meaning, status, text } = readApiFault(error);
  const fix = FIXES[meaning];
  return new EnvironmentError(CODES[meaning], `${what}: ${text}${fix ? `; ${fix}` : ''}`, {
    evidence: { cluster: meaning, status: status ?? null, answer: text },
    again: meaning === 'again',
    cause: error,
  });
}
