/** The docker command line as these scripts need it: no dependency, so that they run before npm has installed anything. */
import { type SpawnOptions, spawn, spawnSync } from 'node:child_process';

/** Label that carries the hash of everything an image was made from; equal hash means nothing to do. */
export const CONTENT_LABEL = 'swebatch.content';

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end and keeps its output; never throws for an exit code. */
export function run(program: string, args: readonly string[], timeoutMs?: number): Finished {
  const done = spawnSync(program, [...args], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs, killSignal: 'SIGKILL' as const }),
  });
  const stderr = done.error ? `${done.stderr ?? ''}${done.error.message}` : done.stderr;
  return { code: done.status ?? 1, stdout: done.stdout ?? '', stderr };
}

/** Streams a program's output to this one's stderr, and fails with the program's name when it fails. */
export function runLoud(program: string, args: readonly string[], options: SpawnOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...args], { stdio: ['ignore', 2, 2], ...options });
    child.once('error', (error) => reject(new Error(`${program} could not be started: ${error.message}`)));
    child.once('exit', (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`${program} ${args[0] ?? ''} ended with ${signal ?? code}`)),
    );
  });
}

/** The content hash an image was built from, or undefined when there is no such image. */
export function imageContent(name: string): string | undefined {
  const found = run('docker', [
    'image',
    'inspect',
    '--format',
    `{{index .Config.Labels "${CONTENT_LABEL}"}}`,
    name,
  ]);
  return found.code === 0 ? found.stdout.trim() : undefined;
}

/** Builds from a Dockerfile text in a context directory; the classic builder's output is shown only when it fails. */
export async function build(
  name: string,
  contextDir: string,
  dockerfile: string,
  content: string,
): Promise<void> {
  const before = imageId(name);
  await runBuild(name, contextDir, dockerfile, content);
  // The image that had this name is left without one; not forced, so one that a container still uses stays.
  if (before !== undefined && before !== imageId(name)) run('docker', ['rmi', before]);
}

function imageId(name: string): string | undefined {
  const found = run('docker', ['image', 'inspect', '--format', '{{.Id}}', name]);
  return found.code === 0 ? found.stdout.trim() : undefined;
}

function runBuild(name: string, contextDir: string, dockerfile: string, content: string): Promise<void> {
  const args = ['build', '--label', `${CONTENT_LABEL}=${content}`, '-t', name, '-f', '-', contextDir];
  // Without a value docker takes each from its environment, or leaves it out.
  for (const key of ['http_proxy', 'https_proxy', 'no_proxy']) args.splice(1, 0, '--build-arg', key);
  return new Promise((resolve, reject) => {
    const child = spawn('docker', args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
    child.once('error', (error) => reject(new Error(`docker could not be started: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) return resolve();
      const tail = Buffer.concat(output).toString('utf8').split('\n').slice(-30).join('\n');
      reject(new Error(`building the image ${name} failed:\n${tail}`));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(dockerfile);
  });
}
