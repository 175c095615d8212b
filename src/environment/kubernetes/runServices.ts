/**
 * The services of a pod while it starts: their order, and their health. The checks are asked by us, with the times that
 * an engine has, because the probes of a kubelet begin nothing and order nothing.
 */
import { pause, startTimer } from '../../base/async/timer.ts';
import type { Service, Services } from '../../base/services.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError, type ServiceLog, type StartRequest } from '../environment.ts';
import { apiError, readApiFault } from './cluster.ts';
import { LOOK_MS, lateness } from './openPod.ts';
import { faultError, stateOfService } from './podFaults.ts';
import { podProcesses } from './podProcess.ts';
import { serviceContainers, waitingServices } from './podServices.ts';
import type { PodShared } from './podShared.ts';

export interface PodServices {
  /** Starts those that wait for others, and resolves when all are healthy, or run. */
  ready(): Promise<void>;
  /** Rejects when one has ended. */
  check(): Promise<void>;
  logs(): Promise<readonly ServiceLog[]>;
}

interface Running {
  readonly shared: PodShared;
  readonly request: StartRequest;
  readonly pod: string;
  readonly containers: ReadonlyMap<string, string>;
  readonly healthy: Set<string>;
}

const LAST_OUTPUT = 1500;
const LOG_LINES = 2000;
/** Bytes of the log of one service. */
const LOG_KEPT = 256 * 1024;
const ENDS_WITHIN_MS = 1_800_000;
/** The time of a check, as engines have it. */
const USUAL_MS = 30_000;
const USUAL_RETRIES = 3;
/** The wait between checks while a failure does not count. */
const EARLY_MS = 1000;

export function servicesOfPod(
  shared: PodShared,
  request: StartRequest,
  pod: string,
  services: Services,
): PodServices {
  const { own, containers } = services;
  const waiting = waitingServices(services);
  const known = new Map(containers.map((service) => [service.name, service]));
  const running: Running = {
    shared,
    request,
    pod,
    containers: serviceContainers(services),
    healthy: new Set(),
  };
  const doneOnes = new Set(
    containers.flatMap(({ after }) =>
      after.flatMap(({ service, until }) => (until === 'done' ? [service] : [])),
    ),
  );
  return {
    async ready() {
      for (const service of containers) {
        if (!waiting.has(service.name)) continue;
        for (const { service: other, until } of service.after)
          if (other !== own.name && known.has(other)) await waitUntil(running, known.get(other)!, until);
        await begin(running, service);
      }
      for (const service of containers)
        await waitUntil(running, service, doneOnes.has(service.name) ? 'done' : 'ready');
    },
    async check() {
      for (const service of containers)
        if (!doneOnes.has(service.name)) await waitUntil(running, service, 'started');
    },
    logs: () =>
      Promise.all(containers.map(async ({ name }) => ({ service: name, text: await logOf(running, name) }))),
  };
}

async function begin({ shared, pod, containers, request }: Running, service: Service): Promise<void> {
  request.signal?.throwIfAborted();
  try {
    await patiently(shared, request, () =>
      shared.cluster.setImage(pod, containers.get(service.name)!, service.image),
    );
  } catch (error) {
    throw apiError(error, `the service ${service.name} of ${request.instanceId} could not be started`);
  }
}

/** An API server that is away is waited for. */
async function patiently<T>(
  { watch }: PodShared,
  { signal }: StartRequest,
  ask: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const { meaning } = readApiFault(error);
      if (meaning !== 'away' && meaning !== 'again') throw error;
      if (meaning === 'away') await watch.back(signal);
      await pause(LOOK_MS, signal);
    }
  }
}

async function stateOf(running: Running, { name }: Service) {
  const { shared, request, pod, containers } = running;
  request.signal?.throwIfAborted();
  try {
    const read = await patiently(shared, request, () => shared.cluster.readPod(pod));
    return stateOfService(read, containers.get(name)!);
  } catch (error) {
    throw apiError(error, `looking at the service ${name} of ${request.instanceId}`);
  }
}

/** `ready`: healthy where it has a check, else running. */
async function waitUntil(
  running: Running,
  service: Service,
  until: 'started' | 'healthy' | 'done' | 'ready',
): Promise<void> {
  const { shared, request, pod, healthy } = running;
  const began = performance.now();
  let since = began;
  let phase = '';
  for (;;) {
    const state = await stateOf(running, service);
    if (state.state === 'failed') throw faultError(state.fault, { service: service.name, pod });
    if (state.state === 'ended') {
      const { exitCode, outOfMemory, why } = state;
      if (until === 'done' && exitCode === 0) return;
      const how = `with exit code ${exitCode}${outOfMemory ? ', out of memory' : ''}${why === '' ? '' : ` (${why})`}`;
      throw await failure(
        running,
        service,
        `${until === 'done' ? 'ended' : 'is not running: it ended'} ${how}`,
      );
    }
    if (state.state === 'running' && until !== 'done') {
      const check = until === 'started' || healthy.has(service.name) ? undefined : checkOf(service);
      if (!check) return;
      if (await becomesHealthy(running, service, check)) {
        healthy.add(service.name);
        return;
      }
      // The service ended meanwhile: the next round tells how.
      continue;
    }
    if (state.state === 'waiting') {
      if (state.phase !== phase) since = performance.now();
      phase = state.phase;
      request.onPhase?.(state.phase === 'start' ? 'start' : 'pull');
      const late = lateness(state, performance.now() - since, shared.config.pull_timeout * 1000, pod);
      if (late) throw faultError(late, { service: service.name, pod });
    }
    if (performance.now() - began > ENDS_WITHIN_MS)
      throw await failure(
        running,
        service,
        `was not ${until === 'done' ? 'done' : 'ready'} within ${ENDS_WITHIN_MS / 1000} s`,
      );
    await pause(LOOK_MS, request.signal);
  }
}

type Check = NonNullable<Service['healthcheck']>;

const checkOf = ({ healthcheck }: Service): Check | undefined =>
  healthcheck && healthcheck.test[0] !== 'NONE' ? healthcheck : undefined;

/**
 * False where it ended meanwhile. Failures count from the first check on that an engine would make, and after the start period: earlier ones
 * only find it healthy sooner.
 */
async function becomesHealthy(running: Running, service: Service, check: Check): Promise<boolean> {
  const { request } = running;
  const { intervalMs = USUAL_MS, startPeriodMs = 0, retries } = check;
  const began = performance.now();
  const counted = () => performance.now() - began >= startPeriodMs + intervalMs;
  for (let failed = 0; ; ) {
    request.signal?.throwIfAborted();
    const counts = counted();
    const { code, said } = await asked(running, service, check);
    if (code === 0) return true;
    const state = await stateOf(running, service);
    if (state.state !== 'running') return false;
    if (counts) failed += 1;
    if (failed >= (retries || USUAL_RETRIES)) {
      const how = typeof code === 'number' ? `ended with exit code ${code}` : code;
      const last = said.trim().slice(-400);
      throw await failure(
        running,
        service,
        `is unhealthy: its check ${how}${last === '' ? '' : `, and said: ${last}`}`,
      );
    }
    await pause(counts ? Math.max(intervalMs, 1) : Math.min(intervalMs, EARLY_MS), request.signal);
  }
}

/** The check of a service, run once in its container. */
async function asked(
  { shared, pod, containers }: Running,
  { name }: Service,
  { test, timeoutMs = USUAL_MS }: Check,
): Promise<{ readonly code: number | string; readonly said: string }> {
  const [form, ...rest] = test;
  const argv = form === 'CMD-SHELL' ? ['/bin/sh', '-c', rest.join(' ')] : rest;
  let said = '';
  try {
    const process = await podProcesses(shared, pod, undefined, containers.get(name)!)(argv);
    const ended = Promise.withResolvers<boolean>();
    const hear = (data: Buffer) => {
      said = (said + data.toString('utf8')).slice(-LAST_OUTPUT);
    };
    process.listen({ stdout: hear, stderr: hear, gone: () => ended.resolve(true) });
    const timer = startTimer(timeoutMs, () => ended.resolve(false));
    const inTime = await ended.promise;
    timer.cancel();
    const code = inTime ? await process.exitCode() : undefined;
    process.destroy();
    if (!inTime) return { code: `did not end within ${timeoutMs / 1000} s`, said };
    return { code: code ?? 'could not be run', said };
  } catch (error) {
    return { code: 'could not be run', said: errorText(error) };
  }
}

async function failure(running: Running, { name }: Service, what: string): Promise<EnvironmentError> {
  const said = (await logOf(running, name)).trim().slice(-LAST_OUTPUT);
  return new EnvironmentError(
    'start_failed',
    `the service ${name} of ${running.request.instanceId} ${what}. ${said === '' ? 'It printed nothing' : `Its last output: ${said}`}`,
    { evidence: { service: name, pod: running.pod } },
  );
}

/** Empty where it cannot be read, or where nothing of it has run. */
async function logOf({ shared, pod, containers }: Running, service: string): Promise<string> {
  try {
    const text = await shared.cluster.logOf(pod, containers.get(service)!, LOG_LINES);
    return Buffer.from(text).subarray(-LOG_KEPT).toString('utf8');
  } catch (error) {
    const { meaning, text } = readApiFault(error);
    return meaning === 'forbidden' ? `(its log may not be read: ${text})` : '';
  }
}
