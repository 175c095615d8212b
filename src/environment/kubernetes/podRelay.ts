/** The work in the sidecar of a pod: the relay and the program come into it by streams, and the relay's connections leave it by one. */
import type { Duplex } from 'node:stream';
import { sleep } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { Death } from '../container/container.ts';
import { type Doorway, EnvironmentError } from '../environment.ts';
import { ownProgram } from '../ownProgram.ts';
import { chooseVariant, libcAmong, libcPaths, PROGRAM_FOLDER, type Program } from '../programs/program.ts';
import { createRelayLine } from '../relay/relayLine.ts';
import { lookAround, podFiles, putProgram } from './podFiles.ts';
import { RELAY, RELAY_FOLDER } from './podManifest.ts';
import { type PodProcess, podProcesses } from './podProcess.ts';
import type { PodShared } from './podShared.ts';

export interface PodRelay {
  listen(port: number, onConnection: (connection: Duplex) => void): Promise<Doorway>;
  /** All of the factory's program; undefined where it has none. */
  bringProgram(signal?: AbortSignal): ProgramOnItsWay | undefined;
}

interface ProgramOnItsWay {
  /** The program's turn has come. */
  readonly begun: Promise<void>;
  /** Rejects with EnvironmentError where it cannot be had or does not suit the image, and with the signal. */
  readonly done: Promise<void>;
}

const PROCESSORS: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };
const LOOKED_FOR = Object.values(PROCESSORS).flatMap(libcPaths);
const PROGRAM = `${RELAY_FOLDER}/relay`;
/** The kubelet tells of the end of a container a moment after its streams have ended (observed: tests/environment/kubernetes/podRelay.test.ts). */
const TOLD_MS = 2500;
const KILLED = 137;

export function podRelay(shared: PodShared, name: string, death: Death): PodRelay {
  const start = podProcesses(shared, name, undefined, RELAY);
  const { program } = shared.options;
  let looked: ReturnType<typeof look> | undefined;
  const look = async () => {
    const { machine, there } = await lookAround(start, LOOKED_FOR);
    const architecture = PROCESSORS[machine] ?? machine;
    return { architecture, libc: libcAmong(there, architecture) };
  };
  const image = () => {
    looked ??= look();
    return looked;
  };
  let ready: Promise<void> | undefined;
  const relayThere = async () => {
    const { architecture } = await image();
    await podFiles(start, shared.watch).put([
      { path: PROGRAM, content: ownProgram('relay', architecture), mode: 0o555 },
    ]);
  };
  const orDeath = async <T>(work: () => Promise<T>, what: string, signal?: AbortSignal): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof EnvironmentError) throw error;
      const text = errorText(error);
      const dead = await death({ while: what, error: text });
      throw dead ?? new EnvironmentError('start_failed', `${what}: ${text}`, { cause: error });
    }
  };
  const bring = async (wanted: Program, begin: () => void, signal?: AbortSignal) => {
    const choice = chooseVariant(wanted, await image());
    if (!choice.ok) throw new EnvironmentError('start_failed', choice.message, { sub: 'wrong_env' });
    const spooled = await shared.spools.ensure(choice.variant);
    const fill = () => {
      begin();
      return putProgram(start, PROGRAM_FOLDER, spooled, signal);
    };
    // `begun` says it.
    await shared.filling(fill, signal, () => undefined);
  };
  return {
    bringProgram(signal) {
      if (!program) return undefined;
      const { promise: begun, resolve } = Promise.withResolvers<void>();
      const work = () => bring(program, resolve, signal);
      return { begun, done: orDeath(work, `${program.name} could not be unpacked`, signal) };
    },
    listen: (port, onConnection) =>
      orDeath(async () => {
        ready ??= relayThere();
        await ready;
        const process = await start([PROGRAM, String(port)], { stdin: true });
        return lineOf(process, port, onConnection, death, name).opened();
      }, `the relay for port ${port} did not start`),
  };
}

function lineOf(
  process: PodProcess,
  port: number,
  onConnection: (connection: Duplex) => void,
  death: Death,
  pod: string,
) {
  const line = createRelayLine({
    port,
    onConnection,
    stream: process,
    async loss(message, said, cause) {
      const evidence = { while: 'carrying connections', relay: pod, said };
      const code = await process.exitCode();
      let dead = await death(evidence);
      // A relay that broke the rules did so whatever becomes of it.
      const broke = cause !== undefined;
      if (!dead && !broke && (code === undefined || code === KILLED)) {
        await sleep(TOLD_MS);
        dead = await death(evidence);
      }
      // Without the kubelet's word on its end it may live on: the stream broke.
      const sub = code === undefined && !broke ? 'daemon_lost' : 'relay';
      const told = { ...evidence, exit_code: code ?? null };
      return dead ?? new EnvironmentError('died', message, { sub, evidence: told, cause });
    },
    // The relay ends with its input, and everything else with the pod.
    remove: async () => undefined,
  });
  process.listen({
    stdout: line.stdout,
    stderr: line.stderr,
    gone: () => line.broke('the relay has ended'),
  });
  return line;
}
