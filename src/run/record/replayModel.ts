/** Opens `replay:NAME`: a run of this results root, or a recording file of `export RUN recording`; `/ARM` picks one arm. */
import { statSync } from 'node:fs';
import type { ReplaySource } from '../../model/offline/replayed.ts';
import type { Store } from '../../store/open.ts';
import { armsOf } from '../../store/records/runs.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { lazyStore, requireRun } from '../resultsRoot.ts';
import { UserError } from '../userError.ts';
import { replaySourceOf } from './recordedReplies.ts';
import { openRecording } from './recording.ts';

export interface OpenedReplay {
  readonly source: ReplaySource;
  /** With the model that their predictions name. */
  readonly arms: readonly { readonly name: string; readonly model: string }[];
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/**
 * The store is opened only for a run: a recording needs none. `playing` is the arm that plays it: with several recorded arms and none
 * named, it plays the arm of its own name.
 */
export function openReplay(name: string, store: () => Store, playing?: string): OpenedReplay {
  const slash = name.lastIndexOf('/');
  const [target, named] =
    slash > 0 && !isFile(name) ? [name.slice(0, slash), name.slice(slash + 1)] : [name, undefined];
  const chosen = (arms: readonly { name: string }[]): string | undefined =>
    named ?? (arms.some((a) => a.name === playing) ? playing : undefined);
  const pick = <T extends { name: string }>(arms: readonly T[]): readonly T[] => {
    const arm = chosen(arms);
    const found = arm === undefined ? arms : arms.filter((a) => a.name === arm);
    if (found.length > 0) return found;
    throw new UserError(`${target} has no arm "${arm}"`, {
      hint: `it has: ${arms.map((a) => a.name).join(', ')}`,
    });
  };
  if (isFile(target)) {
    const recording = readRecording(target);
    return { arms: pick(recording.index.arms), source: recording.source(chosen(recording.index.arms)) };
  }
  if (target.includes('/')) throw new UserError(`there is no recording ${name}`);
  const db = store();
  const run = requireRun(db, target);
  const all = armsOf(db, run.id);
  const arms = pick(all);
  return { arms, source: replaySourceOf(db, run, chosen(all) === undefined ? undefined : arms[0]!.id) };
}

function readRecording(path: string) {
  try {
    return openRecording(path);
  } catch (error) {
    throw new UserError((error as Error).message);
  }
}

/** A replay predicts under the name of the model that it plays. */
export function asRecorded(arm: ArmConfig, root: string): ArmConfig {
  const name = arm.model.model_name ?? '';
  if (!name.startsWith('replay:')) return arm;
  using store = lazyStore(root);
  const { arms } = openReplay(name.slice('replay:'.length), store.get, arm.name);
  return { ...arm, predictsAs: arms[0]!.model };
}
