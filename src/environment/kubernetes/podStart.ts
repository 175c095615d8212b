/** The way from an image to an environment the agent may use: pod, history sealed and verified inside, setup, start tree. */
import type { V1Pod } from '@kubernetes/client-node';
import { type Environment, EnvironmentError, type HistoryState, type StartRequest } from '../environment.ts';
import { ownConfig } from '../ownConfig.ts';
import { refuseUnlessAllowed, sealHistory, verifySealed } from '../start/sealedHistory.ts';
import { pictureOf, runSetup, setupsOf } from '../start/setup.ts';
import type { NetworkCheck } from './networkCheck.ts';
import { type OpenPod, openPod } from './openPod.ts';
import { environmentOf } from './podEnvironment.ts';
import { MAIN } from './podManifest.ts';
import type { PodShared } from './podShared.ts';

export interface StartShared extends PodShared {
  readonly network: NetworkCheck;
}

export async function startPod(arm: StartShared, request: StartRequest): Promise<Environment> {
  const { signal, container } = request;
  const phase = (name: string) => {
    signal?.throwIfAborted();
    request.onPhase?.(name);
  };
  phase('pull');
  const asked = { ...arm, config: ownConfig(arm.config, container) };
  const image = asked.config.image ?? request.image;
  const notes: string[] = [];
  if (asked.config.network === 'none') notes.push(...(await arm.network.closed(image, request)));
  const opened = await openPod(asked, request, image, notes);
  // On its way while the history is sealed.
  const program = opened.relay?.bringProgram(signal);
  program?.done.catch(() => undefined);
  try {
    const config =
      container?.cwd === 'image' ? { ...asked.config, cwd: await folderOf(opened) } : asked.config;
    const shared = { ...asked, config };
    let history: HistoryState = 'skipped';
    if (config.seal_history) {
      phase('seal');
      history = await sealInside(shared, request, opened, notes);
    }
    for (const command of setupsOf(request)) {
      phase('setup');
      await runSetup(opened.channel, config, command, signal);
    }
    phase('snapshot');
    const snapshot = arm.options.snapshot === false ? undefined : await pictureOf(opened.run, config);
    if (program) {
      phase('pull');
      await Promise.race([program.begun, program.done]);
      phase('unpack');
      await program.done;
    }
    signal?.throwIfAborted();
    return environmentOf({
      ...opened,
      config,
      snapshot,
      info: {
        kind: 'kubernetes',
        containerId: opened.name,
        image,
        imageDigest: digestOf(opened.pod) ?? image,
        transport: opened.channel.transport,
        history,
        notes,
      },
    });
  } catch (error) {
    opened.channel.close();
    await opened.remove();
    throw error;
  }
}

/** There are no derived images in a cluster: each pod removes the history of its own repository, and proves it. */
async function sealInside(
  { config }: PodShared,
  request: StartRequest,
  { run }: OpenPod,
  notes: string[],
): Promise<HistoryState> {
  const sealed = await sealHistory(run, config, request.baseCommit);
  notes.push(...sealed.notes);
  if (sealed.state === 'absent') {
    notes.push(`history absent: ${sealed.text}`);
    return 'absent';
  }
  const verified =
    sealed.state === 'sealed' ? await verifySealed(run, config, sealed.text, request.baseCommit) : undefined;
  const reason = verified ? verified.reason : sealed.text;
  if (reason === undefined) return 'sealed';
  notes.push(`history failed: ${reason}`);
  refuseUnlessAllowed(config, request, reason);
  return 'failed';
}

/** The working directory that the image names is that of its first process. */
async function folderOf({ run }: OpenPod): Promise<string> {
  const { output, code } = await run('readlink /proc/1/cwd', { timeoutS: 30, env: {} });
  const folder = output.trim();
  if (code !== 0 || !folder.startsWith('/'))
    throw new EnvironmentError(
      'start_failed',
      `the working directory of the image cannot be read: ${output}`,
    );
  return folder;
}

/** What the node's runtime calls the image; Docker's puts a word before it. */
function digestOf({ status }: V1Pod): string | undefined {
  const id = status?.containerStatuses?.find(({ name }) => name === MAIN)?.imageID ?? '';
  return id.replace(/^docker(?:-pullable)?:\/\//, '') || undefined;
}
