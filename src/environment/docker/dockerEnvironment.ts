/** What the agent and the runner hold: a started container behind the Environment contract. */

import type Docker from 'dockerode';
import { type Doorway, type Environment, type EnvironmentInfo, isLoss } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Channel } from '../exec/channel.ts';
import { diffSnapshot, type GitSnapshot, type ScriptRunner } from '../patch/capture.ts';
import { diffTrees, type TreeSnapshot } from '../patch/treeSnapshot.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { unameVars } from '../uname.ts';
import { folderReader, getFile, putFile } from './containerFiles.ts';
import type { OpenContainer } from './openContainer.ts';
import { getFiles, putFiles } from './work/containerTrees.ts';
import { keepWork } from './work/keepWork.ts';

export interface DockerEnvironmentParts {
  readonly config: EnvironmentConfig;
  readonly container: Docker.Container;
  readonly channel: Channel;
  readonly info: EnvironmentInfo;
  readonly snapshot: GitSnapshot | TreeSnapshot | undefined;
  readonly run: ScriptRunner;
  readonly listen: NonNullable<Environment['listen']>;
  readonly death: OpenContainer['death'];
  readonly watch: EngineWatch;
  readonly remove: () => Promise<void>;
}

export function environmentOf(parts: DockerEnvironmentParts): Environment {
  const { config, container, channel, info, snapshot, run, watch } = parts;
  let closing: Promise<void> | undefined;
  const doorways: Doorway[] = [];
  /** What cannot be done because the container is gone is the container's death. */
  const orDeath = async <T>(work: Promise<T>, what = 'moving a file'): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw (await parts.death(0, { while: what })) ?? error;
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
      environment_class: 'docker',
      system: 'Linux',
    }),
    async capturePatch() {
      if (!snapshot)
        return { patch: new Uint8Array(0), state: 'invalid', warnings: ['no start snapshot was taken'] };
      const limits = { timeoutS: config.capture_timeout, maxBytes: config.max_patch_bytes };
      const capture = async () => {
        await channel.killAll();
        return snapshot.kind === 'copy'
          ? orDeath(diffTrees(folderReader(container), snapshot, config.cwd, limits))
          : diffSnapshot(run, snapshot, config.cwd, limits);
      };
      const since = watch.mark();
      try {
        return await capture();
      } catch (error) {
        // The engine was away and the container outlived that: its work is still there.
        if (isLoss(error) || !watch.awaySince(since)) throw error;
        return capture();
      }
    },
    putFile: (path, content, mode = 0o644) => orDeath(putFile(container, path, content, mode)),
    getFile: (path) => orDeath(getFile(container, path)),
    putFiles: (files) => orDeath(putFiles(container, files)),
    getFiles: (path, maxBytes) => orDeath(getFiles(container, path, maxBytes)),
    async keepWork() {
      await channel.killAll();
      return orDeath(keepWork(container), 'keeping the work');
    },
    async listen(port, onConnection) {
      const doorway = await orDeath(parts.listen(port, onConnection), 'opening a port');
      // One that comes after the end is nobody's.
      if (closing !== undefined) await doorway.close();
      doorways.push(doorway);
      return doorway;
    },
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
