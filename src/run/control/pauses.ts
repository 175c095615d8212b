/**
 * When a run pauses and when it goes on. Four things pause it: a person, the breaker, when instances fail for a reason that the next ones would
 * share, a disk that is nearly full, and a container engine that does not answer. Nothing new starts while one of them holds it.
 */
import { nameWithoutModel } from '../../agent/agents.ts';
import type { RunConfig } from '../../config/configSchema.ts';
import { WRONG_ENVIRONMENT } from '../../environment/environment.ts';
import { didYouMean } from '../../model/prices.ts';
import { type ExitReason, exitClassOf } from '../../outcome.ts';
import { isJudgedByState } from '../../suites/suites.ts';
import type { Run } from '../contract.ts';
import { ENGINE_LOST, type Ending, HOST_FLOOR, pullMayHelp } from '../exit.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { Delays, TrialQueue } from '../schedule/trialQueue.ts';
import { createBreaker } from './breaker.ts';
import { StopReason } from './stop.ts';

/** An image that is gone does not come back by itself: other instances are asked at once whether theirs are there. */
const waitMayHelp = ({ reason, detail }: Ending): boolean =>
  reason !== 'env_image_missing' &&
  reason !== 'env_image_build_failed' &&
  (reason !== 'env_image_pull_failed' || pullMayHelp(detail));

/** A trial whose container is judged, or whose agent is not expected to work, says nothing by its patch. */
const saysNothingByPatch = ({ arm, instance }: PlannedTrial): boolean =>
  isJudgedByState(instance) || nameWithoutModel(arm.agent.agent_class) !== undefined;

export type Pauses = ReturnType<typeof createPauses>;

export function createPauses(
  run: Run,
  queue: TrialQueue,
  delays: Delays,
  showStatus: (status: 'paused' | 'running') => void,
) {
  const { stop, events, config } = run;
  const holds = createHolds(queue, showStatus);
  return {
    /** Decides from the end of an attempt whether the run goes on, pauses, probes or stops. */
    judge: createJudge(run, queue, delays, holds),
    diskLow(message: string) {
      if (stop.why) return;
      holds.hold('disk');
      // The reserve file is deleted already; its room is for capturing and recording the running work.
      stop.halt(new StopReason('disk_full', `${message}: stopped until there is room`, HOST_FLOOR));
      events.emit({
        type: 'paused',
        reason: `${message}; running instances are stopped and captured until there is room (or run.disk_floor is lower)`,
      });
    },
    diskRoom() {
      events.emit({ type: 'resumed', reason: 'the disk has room again' });
      holds.release('disk');
    },
    engineAway(reason: string) {
      if (stop.why) return;
      holds.hold('engine');
      events.emit({
        type: 'paused',
        reason: `the container engine does not answer (${reason}); running instances wait for it, ${waitOf(config.stall)}`,
      });
    },
    engineBack(awayMs: number) {
      events.emit({
        type: 'resumed',
        reason: `the container engine answers again after ${Math.round(awayMs / 1000)} s`,
      });
      holds.release('engine');
    },
    /** False when a person had paused it already. */
    byPerson() {
      if (holds.held().includes('person')) return false;
      holds.hold('person');
      events.emit({ type: 'paused', reason: 'a person paused the run; running instances finish' });
      return true;
    },
    /** Whether a person had paused it, and what else holds it. */
    goOn() {
      const was = holds.held().includes('person');
      holds.release('person');
      if (was) events.emit({ type: 'resumed', reason: 'a person lets the run go on' });
      return { was, heldBy: holds.held().map((why) => WAITS_FOR[why]) };
    },
    /** The engine was waited for long enough: nothing new starts in this sitting. */
    engineLost(reason: string) {
      events.emit({ type: 'breaker', reason });
      stop.stopStarting('env_died', reason);
    },
    /** The run stops, so pauses no longer apply. */
    end: () => holds.clear(),
  };
}

const waitOf = ({ engine_s }: RunConfig['stall']): string => {
  if (engine_s === 0) return 'however long it takes';
  return engine_s < 120 ? `up to ${engine_s} s` : `up to ${Math.round(engine_s / 60)} min`;
};

type Hold = 'breaker' | 'disk' | 'engine' | 'person';

const WAITS_FOR: Readonly<Record<Hold, string>> = {
  breaker: 'a probe after failures that instances share',
  disk: 'room on the disk',
  engine: 'the container engine',
  person: 'a person',
};

/** The queue goes on once nothing holds it. */
function createHolds(queue: TrialQueue, showStatus: (status: 'paused' | 'running') => void) {
  const reasons = new Set<Hold>();
  return {
    hold(why: Hold) {
      reasons.add(why);
      queue.pause();
      showStatus('paused');
    },
    release(why: Hold) {
      if (!reasons.delete(why) || reasons.size > 0) return;
      showStatus('running');
      queue.resume();
    },
    held: () => [...reasons],
    clear: () => reasons.clear(),
  };
}

/** Carries out what the breaker decides. After a pause one instance runs alone; when it ends well, all slots are used again. */
function createJudge(
  { config, stop, events, instances }: Run,
  queue: TrialQueue,
  delays: Delays,
  holds: ReturnType<typeof createHolds>,
) {
  const { probe_after_s, max_probes, empty_patches, ...rules } = config.breaker;
  const breaker = createBreaker({ ...rules, emptyPatches: empty_patches, instances: instances.size });
  let probes = 0;
  let failing = '';
  const pause = (reason: string, because: ExitReason, waits: boolean) => {
    events.emit({ type: 'breaker', reason });
    probes += 1;
    if (probes > max_probes) {
      stop.stopStarting(because, `${probes - 1} probes failed: ${reason}`);
      return;
    }
    holds.hold('breaker');
    const seconds = waits ? probe_after_s : 0;
    const when = waits ? `in ${probe_after_s} s` : 'now';
    events.emit({ type: 'paused', reason: `${reason}; one instance probes ${when}` });
    delays.after(seconds * 1000, () => {
      breaker.probe();
      queue.limitSlots(1);
      holds.release('breaker');
    });
  };
  return (
    trial: PlannedTrial,
    { ending, patchBytes }: { readonly ending: Ending; readonly patchBytes: number },
  ) => {
    // The machine's disk says nothing about the instances.
    if (ending.detail === HOST_FLOOR) return;
    // The engine that was away says nothing of them either, and is waited for.
    if (ending.detail === ENGINE_LOST) return;
    // An end that an agent made of its own container is that agent's alone.
    if (ending.byAgent && exitClassOf(ending.reason) === 'infra') return;
    const missing = ending.detail === WRONG_ENVIRONMENT ? ending.evidence?.package : null;
    const decision = breaker.note({
      image: trial.image,
      missingPackage: typeof missing === 'string' ? missing : null,
      instanceId: trial.label.instanceId,
      beforeAnyAnswer: ending.beforeAnyAnswer ?? false,
      unreachable: ending.unreachable ?? false,
      ofModule: ending.ofModule ?? false,
      arm: trial.arm.row.name,
      reason: ending.reason,
      class: exitClassOf(ending.reason),
      message: ending.message,
      patchBytes: saysNothingByPatch(trial) ? Math.max(1, patchBytes) : patchBytes,
    });
    if (decision.do === 'stop') {
      events.emit({ type: 'breaker', reason: decision.reason });
      const meant = ending.reason === 'model_not_found' ? didYouMean(trial.arm.model) : '';
      stop.stopStarting(decision.as ?? ending.reason, `${decision.reason}${meant}`);
    } else if (decision.do === 'pause') {
      failing = trial.arm.row.name;
      pause(decision.reason, ending.reason, waitMayHelp(ending));
    } else if (decision.do === 'resume') {
      // The failure is over. Another arm's good end tells nothing about the arm that failed.
      if (trial.arm.row.name === failing) probes = 0;
      queue.allSlots();
      events.emit({ type: 'resumed', reason: decision.reason });
    }
  };
}
