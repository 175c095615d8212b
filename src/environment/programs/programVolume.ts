/**
 * A program unpacked once per engine, in a volume that containers get read-only. The volume's name says what is in it, a file in it says that
 * all of it is there, and the name of a container that never runs is the lock: processes that want to fill it wait for each other.
 */
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { sleep } from '../../base/async/timer.ts';
import { EnvironmentError, type Owner } from '../environment.ts';
import { isOwnerAlive, ownerLabels, PROGRAM_LABELS } from '../owner.ts';
import { daemonAnswer, readFault } from '../places/dockerFault.ts';
import { programTar } from './packageTar.ts';
import { chooseVariant, libcOf, PROGRAM_FOLDER, type Program, type ProgramVariant } from './program.ts';

/** Raise it when what is written into a volume changes; older ones are then not used again. */
const FORMAT = 1;
const MARKER = '.complete';
const FILL_LIMIT_MS = 600_000;
const LOCK_POLL_MS = 250;

interface VolumeImage {
  readonly id: string;
  readonly architecture: string;
}

export interface ProgramVolumes {
  /** The name of a volume with all of the program in it, as the image needs it. */
  ensure(program: Program, image: VolumeImage, owner: Owner): Promise<string>;
}

export function volumeName(program: Program, { libc, packages }: ProgramVariant): string {
  const key = JSON.stringify([
    FORMAT,
    program.architecture,
    libc,
    packages.map((p) => [p.integrity, p.folder]),
  ]);
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 20);
  const readable = program.name.replaceAll(/[^A-Za-z0-9_.-]+/g, '-');
  return `swebatch-program-${readable}-${libc ?? 'static'}-${hash}`;
}

/** `discard`: removes a container, and tells of one that stays. */
export function createProgramVolumes(docker: Docker, discard: Discard = discardQuietly): ProgramVolumes {
  const known = new Map<string, Promise<string>>();
  return {
    ensure(program, image, owner) {
      const key = `${program.name} ${image.id}`;
      let found = known.get(key);
      if (!found) {
        found = provide({ docker, program, image, owner, discard });
        known.set(key, found);
        // A failure may be gone in the next attempt.
        found.catch(() => known.delete(key));
      }
      return found;
    },
  };
}

interface Providing {
  readonly docker: Docker;
  readonly program: Program;
  readonly image: VolumeImage;
  readonly owner: Owner;
  readonly discard: Discard;
}

async function provide(parts: Providing): Promise<string> {
  const { docker, program, image, discard } = parts;
  const looking = await docker.createContainer(
    neverRuns(parts, `swebatch-look-${randomBytes(6).toString('hex')}`),
  );
  let variant: ProgramVariant;
  try {
    const libc = await libcOf(looking, image.architecture || program.architecture);
    const choice = chooseVariant(program, { architecture: image.architecture, libc });
    if (!choice.ok) throw new EnvironmentError('start_failed', choice.message, { sub: 'wrong_env' });
    variant = choice.variant;
  } finally {
    await discard(looking);
  }
  const volume = volumeName(program, variant);
  const holder = await lock(parts, volume);
  try {
    if (!(await isComplete(holder))) await fill(parts, holder, variant);
  } finally {
    await discard(holder);
  }
  return volume;
}

/** A container to look and write through; it needs no program, because it is never started. */
const neverRuns = (
  { program, image, owner }: Providing,
  name: string,
  volume?: string,
): Docker.ContainerCreateOptions => ({
  Image: image.id,
  Entrypoint: ['none'],
  Cmd: [],
  name,
  Labels: {
    ...ownerLabels(owner, program.name, new Date(), name),
    ...(volume !== undefined && { [PROGRAM_LABELS.fills]: volume }),
  },
  HostConfig: {
    NetworkMode: 'none',
    ...(volume !== undefined && {
      Mounts: [
        {
          Type: 'volume',
          Source: volume,
          Target: PROGRAM_FOLDER,
          ReadOnly: false,
          VolumeOptions: {
            NoCopy: true,
            Labels: { [PROGRAM_LABELS.program]: program.name },
            DriverConfig: { Name: '', Options: {} },
          },
        },
      ],
    }),
  },
});

type Discard = (container: Docker.Container) => Promise<unknown>;

const discardQuietly: Discard = (container) =>
  container.remove({ force: true, v: true }).catch(() => undefined);

/**
 * Waits for another process that fills the same volume; takes over from one that is dead (observed:
 * tests/environment/programs/programVolume.test.ts).
 */
async function lock(parts: Providing, volume: string): Promise<Docker.Container> {
  const { docker, program, discard } = parts;
  const name = `${volume}-lock`;
  const until = performance.now() + FILL_LIMIT_MS;
  for (;;) {
    try {
      return await daemonAnswer(docker.createContainer(neverRuns(parts, name, volume)));
    } catch (error) {
      if (readFault(error).status !== 409) throw unpackError(program, error);
    }
    if (performance.now() > until)
      throw new EnvironmentError(
        'start_failed',
        `${program.name} is being unpacked by another process, which does not end; "docker rm ${name}" if nothing works on it`,
      );
    await removeDead(docker, name, discard);
    await sleep(LOCK_POLL_MS);
  }
}

async function removeDead(docker: Docker, name: string, discard: Discard): Promise<void> {
  const holder = docker.getContainer(name);
  const labels = await holder.inspect().then(
    ({ Config }) => Config.Labels,
    () => undefined,
  );
  if (labels && isOwnerAlive(labels) === 'dead') await discard(holder);
}

async function isComplete(holder: Docker.Container): Promise<boolean> {
  try {
    await holder.infoArchive({ path: `${PROGRAM_FOLDER}/${MARKER}` });
    return true;
  } catch (error) {
    if (readFault(error).status === 404) return false;
    throw error;
  }
}

async function fill(
  { program }: Providing,
  holder: Docker.Container,
  { packages }: ProgramVariant,
): Promise<void> {
  const archive = Readable.from(programTar(packages));
  const broken = new AbortController();
  archive.on('error', (error) => broken.abort(error));
  try {
    // The types know no abortSignal; the client gives it to the request, which would else wait for the rest of the archive (observed:
    // tests/environment/programs/programVolume.test.ts).
    const options = { path: PROGRAM_FOLDER, abortSignal: broken.signal };
    await daemonAnswer(holder.putArchive(archive, options), FILL_LIMIT_MS);
    broken.signal.throwIfAborted();
    const mark = tar.pack();
    mark.entry({ name: MARKER, mode: 0o444 }, `${program.name}\n`);
    mark.finalize();
    await daemonAnswer(holder.putArchive(Readable.from(mark), { path: PROGRAM_FOLDER }));
  } catch (error) {
    throw unpackError(program, broken.signal.reason ?? error);
  } finally {
    archive.destroy();
  }
}

const unpackError = (program: Program, cause: unknown): EnvironmentError =>
  new EnvironmentError('start_failed', `${program.name} could not be unpacked: ${readFault(cause).text}`, {
    cause,
  });

interface UnpackedProgram {
  readonly volume: string;
  readonly program: string;
}

/** Every volume of ours on an engine. */
export async function listProgramVolumes(docker: Docker): Promise<UnpackedProgram[]> {
  const { Volumes } = await daemonAnswer(
    docker.listVolumes({ filters: JSON.stringify({ label: [PROGRAM_LABELS.program] }) }),
  );
  return (Volumes ?? []).map(({ Name, Labels }) => ({
    volume: Name,
    program: Labels?.[PROGRAM_LABELS.program] ?? '',
  }));
}
