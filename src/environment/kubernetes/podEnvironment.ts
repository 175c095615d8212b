/** What the agent and the runner hold: a running pod behind the Environment contract. */
import type { Doorway, Environment, EnvironmentInfo } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { diffSnapshot, type GitSnapshot } from '../patch/capture.ts';
import { diffTrees, type TreeSnapshot } from '../patch/treeSnapshot.ts';
import { unameVars } from '../uname.ts';
import type { OpenPod } from './openPod.ts';
import { folderReader, getFile, getFiles, putFile, putFiles } from './podFiles.ts';

export interface PodEnvironmentParts extends OpenPod {
  readonly config: EnvironmentConfig;
  readonly info: EnvironmentInfo;
  readonly snapshot: GitSnapshot | TreeSnapshot | undefined;
}

export function environmentOf(parts: PodEnvironmentParts): Environment {
  const { config, channel, info, snapshot, run, startProcess, death, relay } = parts;
  let closing: Promise<void> | undefined;
  const doorways: Doorway[] = [];
  /** What cannot be done because the pod is gone is the pod's death. */
  const orDeath = async <T>(work: Promise<T>, what = 'moving a file'): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw (await death({ while: what })) ?? error;
    }
  };
  return {
    info,
    execute: channel.execute,
    templateVars: () => ({
      ...unameVars(),
      cwd: config.cwd,
      timeout: config.timeout,
      interpreter: config.interpreter,
      env: config.env,
      image: info.image,
      environment_class: 'kubernetes',
      system: 'Linux',
    }),
    async capturePatch() {
      if (!snapshot)
        return { patch: new Uint8Array(0), state: 'invalid', warnings: ['no start snapshot was taken'] };
      const limits = { timeoutS: config.capture_timeout, maxBytes: config.max_patch_bytes };
      await channel.killAll();
      return snapshot.kind === 'copy'
        ? orDeath(diffTrees(folderReader(startProcess), snapshot, config.cwd, limits))
        : diffSnapshot(run, snapshot, config.cwd, limits);
    },
    putFile: (path, content, mode = 0o644) => orDeath(putFile(startProcess, path, content, mode)),
    getFile: (path) => orDeath(getFile(startProcess, path)),
    putFiles: (files) => orDeath(putFiles(startProcess, files)),
    getFiles: (path, maxBytes) => orDeath(getFiles(startProcess, path, maxBytes)),
    ...(relay && {
      async listen(port, onConnection) {
        const doorway = await orDeath(relay.listen(port, onConnection), 'opening a port');
        // One that comes after the end is nobody's.
        if (closing !== undefined) await doorway.close();
        doorways.push(doorway);
        return doorway;
      },
    }),
    close() {
      closing ??= (async () => {
        channel.close();
        await Promise.all(doorways.map((doorway) => doorway.close()));
        await parts.remove().catch(() => undefined);
      })();
      return closing;
    },
  };
}
