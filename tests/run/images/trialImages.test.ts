// When an image of a run counts as needed, and when the policy gets it.
import { describe, expect, test } from 'vitest';
import { EnvironmentError } from '../../../src/environment/environment.ts';
import type { ImageService } from '../../../src/environment/places/imageService.ts';
import { createEvents } from '../../../src/run/events.ts';
import { createTrialImages } from '../../../src/run/places/trialImages.ts';

const settled = () => new Promise((done) => setImmediate(done));

function setUp(
  images: (string | string[])[],
  grading: boolean,
  ready: () => Promise<readonly string[]> = async () => [],
  more: { gradings?: string[]; ofRun?: string[]; hasRoom?: () => Promise<boolean> } = {},
) {
  const calls: string[] = [];
  const errors: string[] = [];
  const belong: string[] = [];
  // Only what TrialImages uses.
  const service = {
    need: async (list: readonly string[]) => void calls.push(`need ${list.join(',')}`),
    done: async (image: string) => {
      calls.push(`done ${image}`);
      return { removed: [], kept: [] };
    },
    collect: async () => {
      calls.push('collect');
      return { removed: [], kept: [] };
    },
    belong: (list: readonly string[]) => void belong.push(...list),
    hasRoom: more.hasRoom ?? (async () => true),
    ready,
  } as unknown as ImageService;
  const events = createEvents();
  const notes: string[] = [];
  events.on((event) => event.type === 'note' && notes.push(event.text));
  const trials = images.map((image, i) => ({ trialId: i, images: [image].flat() }));
  const gradings = (more.gradings ?? []).map((image, i) => ({ trialId: 100 + i, images: [image] }));
  const made = createTrialImages({
    here: new Set(),
    service,
    trials,
    gradings,
    ofRun: more.ofRun ?? [],
    grading,
    ahead: 2,
    events,
    onError: (m) => errors.push(m),
  });
  const label = (trialId: number) => ({ trialId, instanceId: `i-${trialId}`, arm: 'a', epoch: 1 });
  const ended = (trialId: number, more: { sealed?: boolean; exitReason?: 'submitted' | 'env_died' } = {}) => {
    events.emit({
      type: 'trial_ended',
      trial: label(trialId),
      slot: 1,
      attempt: 1,
      exitReason: more.exitReason ?? 'submitted',
      exitClass: 'agent',
      detail: null,
      message: null,
      sealed: more.sealed ?? true,
      steps: 1,
      costNano: 0,
      elapsedMs: 1,
      patchBytes: 1,
    });
    return settled();
  };
  const graded = (trialId: number) => {
    events.emit({
      type: 'graded',
      trial: label(trialId),
      outcome: 'resolved',
      resolved: true,
      durationMs: 1,
    });
    return settled();
  };
  return { made, calls, notes, errors, belong, ended, graded };
}

describe('release', () => {
  test('an image goes to the policy with the last trial that needs it, after it is no longer listed as needed', async () => {
    const { calls, ended } = setUp(['x', 'y', 'x'], false);
    await settled();
    expect(calls).toEqual(['need x,y']);
    await ended(0);
    expect(calls).toHaveLength(1);
    await ended(2);
    expect(calls).toEqual(['need x,y', 'need y', 'done x']);
    await ended(2);
    expect(calls).toHaveLength(3);
  });

  test('a trial that will run again keeps its image', async () => {
    const { calls, ended } = setUp(['x'], false);
    await ended(0, { sealed: false, exitReason: 'env_died' });
    expect(calls).toEqual(['need x']);
  });

  test('with grading the image stays until the verdict; what is not graded goes at once', async () => {
    const { calls, ended, graded } = setUp(['x', 'y'], true);
    await ended(0);
    await ended(1, { exitReason: 'env_died' });
    expect(calls).toEqual(['need x,y', 'need x', 'done y']);
    await graded(0);
    expect(calls.slice(3)).toEqual(['need ', 'done x']);
  });
});

describe('what else is needed', () => {
  test('the image of a grading that an earlier sitting left is needed until its verdict', async () => {
    const { calls, ended, graded } = setUp(['x'], true, undefined, { gradings: ['old', 'x'] });
    await ended(0);
    await graded(0);
    expect(calls).toEqual(['need x,old']);
    await graded(100);
    expect(calls.slice(1)).toEqual(['need x', 'done old']);
    await graded(101);
    expect(calls.slice(3)).toEqual(['need ', 'done x']);
  });

  test('a trial that is graded in another image than it ran in needs both', async () => {
    const { calls, ended, graded } = setUp([['own', 'row']], true);
    await ended(0);
    expect(calls).toEqual(['need own,row']);
    await graded(0);
    expect(calls.filter((call) => call.startsWith('done'))).toEqual(['done own', 'done row']);
  });

  test('the policy is told which images are this run’s, whatever is left to do of it', async () => {
    const { belong } = setUp(['x'], false, undefined, { ofRun: ['x', 'done before'] });
    expect(belong).toEqual(['x', 'done before']);
  });
});

test('the disk is asked again when a slot is free; a failure and an engine that does not answer go on', async () => {
  const answers = [async () => false, async () => true, () => Promise.reject(new Error('gone'))];
  const { made } = setUp(['x'], false, undefined, { hasRoom: () => answers.shift()!() });
  const admission = { failure: undefined };
  expect(await made.mayStart(admission)).toBe(false);
  expect(await made.mayStart(admission)).toBe(true);
  expect(await made.mayStart(admission)).toBe(true);
  const failure = new EnvironmentError('image_missing', 'no such image');
  expect(await made.mayStart({ ...admission, failure })).toBe(true);
});

test('the end of a sitting waits for what is under way, then collects once more', async () => {
  const { made, calls, ended } = setUp(['x', 'y'], false);
  void ended(0);
  await made.finish();
  expect(calls.slice(-3)).toEqual(['need y', 'done x', 'collect']);
});

describe('ready', () => {
  test('a failure is handed to the trial that asked, a warning to everybody', async () => {
    const fault = new EnvironmentError('image_missing', 'no such image');
    const answers = [() => Promise.reject(fault), async () => ['it is EMULATED']];
    const { made, notes } = setUp(['x'], false, () => answers.shift()!());
    const { signal } = new AbortController();
    expect(await made.ready('x', signal)).toEqual({ failure: fault });
    expect(await made.ready('x', signal)).toEqual({ failure: undefined });
    expect(notes).toEqual(['it is EMULATED']);
  });

  test('a run that stops is no failure of the image', async () => {
    const stop = new AbortController();
    const { made } = setUp(['x'], false, async () => {
      stop.abort();
      throw new EnvironmentError('image_pull_failed', 'the run was stopped');
    });
    expect(await made.ready('x', stop.signal)).toEqual({ failure: undefined });
  });
});
