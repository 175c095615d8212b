// What runs of the real program on the small base image need: replies, rows, images in a registry or on a second engine.
import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { docker } from './docker.ts';
import { BASE_IMAGE, smallImage } from './dockerEnvironment.ts';
import type { SecondEngine } from './secondEngine.ts';

/** Not the synchronous form: registries and model servers of tests live in the process that calls this. */
export const exec = promisify(execFile);

/** A reply of a scripted model that runs one command. */
export const says = (command: string) => ({ content: `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\`` });
export const SUBMITS = says(
  'git add -A; git diff --cached > /tmp/p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat /tmp/p',
);

export async function baseCommit(): Promise<string> {
  const head = ['run', '--rm', '--network', 'none', BASE_IMAGE, 'git', '-C', '/testbed', 'rev-parse', 'HEAD'];
  return (await exec('docker', head)).stdout.trim();
}

/** An image of this machine on a second engine, by way of a file in `dir`; its name. */
export async function loadBase(engine: SecondEngine, dir: string, image?: string): Promise<string> {
  const name = image ?? (await smallImage());
  const tar = join(dir, 'base.tar');
  await pipeline(await docker.getImage(name).get(), createWriteStream(tar));
  await exec('docker', ['-H', `unix://${engine.socket}`, 'load', '-q', '-i', tar]);
  return name;
}

/** The small image with a change of its own, pushed to the registry that its name says and taken off the engine again. */
export async function pushDerived(
  image: string,
  change: { readonly label?: string; readonly command?: string },
): Promise<void> {
  const container = await docker.createContainer({
    Image: await smallImage(),
    Cmd: ['sh', '-c', change.command ?? 'true'],
    NetworkDisabled: true,
    HostConfig: { NetworkMode: 'none' },
  });
  try {
    if (change.command) {
      await container.start();
      await container.wait();
    }
    const [, repo, tag] = /^(.*):([^:]+)$/.exec(image)!;
    await container.commit({ repo, tag, ...(change.label && { changes: `LABEL test=${change.label}` }) });
  } finally {
    await container.remove({ force: true });
  }
  await exec('docker', ['push', '-q', image]);
  await exec('docker', ['rmi', image]);
}

export async function removeImages(images: readonly string[]): Promise<void> {
  for (const image of images)
    await docker
      .getImage(image)
      .remove()
      .catch(() => {});
}
