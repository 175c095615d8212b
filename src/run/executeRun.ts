/** The common part of new and continued runs: recovery after a dead process, the session, the outcome. */
import { pathInside } from '../base/files/pathInside.ts';
import type { Redactor } from '../base/text/redact.ts';
import { currentOwner } from '../environment/owner.ts';
import { type ImagesConfig, imagesConfigSchema } from '../environment/places/images/imagesConfig.ts';
import { meansCredential } from '../model/namedCredentials.ts';
import type { Store } from '../store/open.ts';
import { type RunRow, runByName, setRunStatus, spentNano } from '../store/records/runs.ts';
import { type TrialRow, trialsOf } from '../store/records/trials.ts';
import { armProgram } from './agents/armAgent.ts';
import { attended, type Caller, variable } from './caller.ts';
import { createNotifier, warningTo } from './control/notify.ts';
import { recoverRun, refuseLostRecords } from './control/recover.ts';
import type { StopLadder } from './control/stop.ts';
import { cleanedBy, createEvents, type RunEvents } from './events.ts';
import { type FailureKind, failureKinds } from './failures.ts';
import { type OpenedImages, openRunImages } from './places/openImages.ts';
import { reapOrphans } from './places/reapOrphans.ts';
import type { ArmConfig } from './plan/planRecord.ts';
import { openReplay } from './record/replayModel.ts';
import { logEvents, openLog, type RunLog } from './record/runLog.ts';
import { runSession, type SessionPorts, type SessionResult, type StoredRun } from './run.ts';
import { ordinarySecrets, redactorOfModels } from './secrets.ts';
import { VERSION } from './version.ts';

export interface ExecuteRequest extends StoredRun {
  /** Default: that of an empty `images:` section. */
  readonly images?: ImagesConfig | undefined;
  readonly arms: readonly ArmConfig[];
  /** Chooses trials, after those of a dead process are pending again. */
  readonly choose?: (trials: readonly TrialRow[]) => readonly TrialRow[];
}

export interface RunOutcome extends SessionResult {
  readonly run: string;
  readonly root: string;
  readonly spent: ReturnType<typeof spentNano>;
  /** The budget of the whole run; null for none. */
  readonly budgetNano: number | null;
  /** Name of the signal, or of whoever else stopped it. */
  readonly interruptedBy: string | null;
  /** Why trials failed without a statement about the model. */
  readonly failures: readonly FailureKind[];
}

/** The caller holds the lock. A run that cannot go on is not left as one that runs. */
export async function executeRun(request: ExecuteRequest, caller: Caller): Promise<RunOutcome> {
  const { store, run } = request;
  try {
    return await execute(request, caller);
  } catch (error) {
    endFailed(store, run);
    throw error;
  }
}

/** Whatever was thrown is what the person hears: a record that cannot be written must not hide it. */
function endFailed(store: Store, { id, name }: RunRow): void {
  try {
    const status = runByName(store, name)?.status;
    if (status === 'running' || status === 'paused')
      setRunStatus(store, id, 'failed', new Date().toISOString());
  } catch {
    // A killed process leaves its run like this too: "ls" tells that it gives no sign of life.
  }
}

async function execute(request: ExecuteRequest, caller: Caller): Promise<RunOutcome> {
  const { store, root, run, config } = request;
  const redactor = secretsOf(request, caller);
  recover(request, caller);
  await reapOrphans(request.arms, caller);
  const all = trialsOf(store, run.id);
  const toDo = (request.choose ?? ((t) => t))(all).filter((t) => t.state === 'pending');
  const log = openLog(pathInside(root, run.name, 'run.log'), redactor);
  const events = createEvents(
    (error) => log.write('warn', 'a listener failed', { error: String(error) }),
    cleanedBy(redactor),
  );
  events.on(logEvents(log));
  const work = { run: run.name, root, workers: config.workers, events };
  const { stop, attendant } = attended(caller, work, {
    onInterrupt: config.on_interrupt,
    graceS: config.stop_grace_s,
  });
  const notifier = createNotifier(config, attendant.say ?? warningTo(caller.tell));
  events.on(notifier.listener);
  const tools = { toDo, redactor, events, stop, log };
  let result: SessionResult;
  try {
    result = await session(request, caller, tools, () => attendant.over?.());
  } finally {
    await notifier.settle();
    attendant.end?.();
  }
  return outcomeOf(request, result, stop.interruptedBy);
}

/** The caller learns the secrets before anything is printed; a secret that is an ordinary word gets a warning. */
function secretsOf({ arms }: ExecuteRequest, { env, keepSecret, tell }: Caller): Redactor {
  const models = arms.map((arm) => arm.model);
  const redactor = redactorOfModels(env, models);
  keepSecret?.(redactor);
  for (const name of ordinarySecrets(env, models))
    tell({
      level: 'warning',
      text: `the value of $${name} is an ordinary word: it is replaced wherever it occurs in messages and output`,
    });
  for (const name of openCredentials(arms))
    tell({
      level: 'warning',
      text: `environment.env.${name} goes into every container, where the agent can read it, and stands in the record as it is`,
    });
  return redactor;
}

/** Variables of the containers whose names mean a credential. */
const openCredentials = (arms: ExecuteRequest['arms']): Set<string> =>
  new Set(
    arms.flatMap(({ environment }) =>
      Object.entries(environment.env).flatMap(([name, value]) =>
        value !== '' && meansCredential(name) ? [name] : [],
      ),
    ),
  );

function recover({ store, root, run }: ExecuteRequest, { tell }: Caller): void {
  refuseLostRecords(store, run, pathInside(root, run.name));
  const { trials, possiblyBilled } = recoverRun(store, run.id, new Date().toISOString());
  if (trials === 0) return;
  const billed =
    possiblyBilled > 0 ? `, and ${possiblyBilled} model call(s) were possibly billed without a record` : '';
  tell({
    level: 'note',
    text: `${trials} trial(s) were running when the last process ended; they are pending again${billed}`,
  });
}

interface SessionTools {
  readonly toDo: readonly TrialRow[];
  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  readonly log: RunLog;
}

async function session(
  request: ExecuteRequest,
  { env, cwd }: Caller,
  { log, toDo, events, ...tools }: SessionTools,
  over: () => void,
): Promise<SessionResult> {
  const { store, run, arms, images } = request;
  const owner = currentOwner(run.name, 'run');
  let opened: OpenedImages | undefined;
  try {
    opened = await openRunImages(env, arms, images ?? imagesConfigSchema.parse({}), events, store);
    const engines = opened && { ...opened, engineDir: await opened.images.engineDir() };
    const ports: SessionPorts = {
      ...tools,
      events,
      cwd,
      secret: (name) => variable(env, name),
      leaseOwner: `${owner.host}:${owner.bootId}:${owner.pid}:${owner.pidStart}`,
      version: VERSION,
      log: (level, message, data) => log.write(level, message, data),
      program: (agentClass) => armProgram(agentClass, env),
      fetchReplay: async (name, arm) => openReplay(name, () => store, arm).source,
    };
    return await runSession(request, toDo, ports, engines);
  } finally {
    await opened?.images.close();
    over();
  }
}

const outcomeOf = (
  { store, root, run }: ExecuteRequest,
  result: SessionResult,
  interruptedBy: string | null,
): RunOutcome => ({
  ...result,
  run: run.name,
  root,
  spent: spentNano(store, run.id),
  budgetNano: runByName(store, run.name)?.budget_nano ?? null,
  interruptedBy,
  failures: (result.counts.infra ?? 0) > 0 ? failureKinds(store, run.id) : [],
});
