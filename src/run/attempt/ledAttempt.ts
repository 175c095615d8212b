/**
 * The attempt at a task whose suite leads the agent through it, in several runs of it. They are one attempt in the record: each run counts from where
 * the one before ended. The limits are those of the attempt: what earlier runs used is gone.
 */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import type { AgentCallbacks, AgentContext, AgentResult } from '../../agent/contract.ts';
import type { Environment } from '../../environment/environment.ts';
import { type NanoDollars, nanoToDollars } from '../../money.ts';
import type { AgentPart, LedAttempt } from '../../suites/suite.ts';
import { orAbort } from '../control/orAbort.ts';
import { endingOfResult } from '../exit.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';

export function ledAttempt(parts: {
  readonly environment: Environment;
  readonly config: AgentConfig;
  readonly journal: Pick<AttemptJournal, 'phases' | 'callbacks' | 'note' | 'recordWork'>;
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** One run of the agent, from its beginning to its end. */
  readonly runAgent: (
    instruction: string,
    config: AgentConfig,
    callbacks: AgentCallbacks,
  ) => Promise<AgentResult>;
  readonly gradeRequest: LedAttempt['gradeRequest'];
}): LedAttempt {
  const { environment, journal, signal, now, gradeRequest } = parts;
  const record = recordRuns(journal.callbacks);
  const began = now();
  let cost: number | null = 0;
  return {
    environment,
    signal,
    gradeRequest,
    async runAgent(part) {
      const config = configFor(parts.config, record, (now() - began) / 1000, part);
      const result =
        'limit' in config
          ? usedUp(config.limit)
          : await parts.runAgent(part.instruction, config, record.callbacks(part.name));
      record.ran(result.steps);
      cost = cost === null || result.costNano === null ? null : cost + result.costNano;
      const { reason, message } = endingOfResult(result);
      return { result: { ...result, steps: record.steps, costNano: cost }, reason, message };
    },
    beginPhase: (name) => journal.phases.begin(name),
    note: (text) => journal.note(text),
    recordWork: (work) => journal.recordWork(work),
    orEnd: (work) => orAbort(work, signal),
  };
}

const usedUp = (limit: string): AgentResult => ({
  ...{ exitStatus: 'LimitsExceeded', limit, submission: '', messages: [], steps: 0, costNano: 0 },
});

/** What is left of the attempt's limits. The time that the task gives is that of the part. */
function configFor(
  config: AgentConfig,
  { steps, spentNano, tokens }: RunsRecord,
  elapsedS: number,
  { agentS: ownS = 0 }: AgentPart,
): AgentConfig | { readonly limit: string } {
  const used = {
    step_limit: ['steps', steps],
    cost_limit: ['cost', nanoToDollars(spentNano)],
    token_limit: ['tokens', tokens],
    wall_time_limit_seconds: ['wall_time', elapsedS],
  } as const;
  const left: Record<string, number> = {};
  for (const [key, [limit, amount]] of Object.entries(used)) {
    const most = config[key as keyof typeof used];
    if (most <= 0) continue;
    if (amount >= most) return { limit };
    left[key] = most - amount;
  }
  const leftS = left.wall_time_limit_seconds ?? 0;
  const limitS = ownS > 0 && leftS > 0 ? Math.min(ownS, leftS) : Math.max(ownS, leftS);
  return { ...config, ...left, wall_time_limit_seconds: limitS };
}

interface RunsRecord {
  /** For the next run of the agent, on this part of the task. */
  callbacks(task_step: string): AgentCallbacks;
  /** After it: how many steps of the agent it took. */
  ran(steps: number): void;
  readonly steps: number;
  readonly tokens: number;
  /** Known cost, with estimates where that of a call is unknown. */
  readonly spentNano: NanoDollars;
}

/** Of everything that was recorded before. */
interface Offsets {
  steps: number;
  messages: number;
  calls: number;
}

const shifted = (ctx: AgentContext, from: Offsets): AgentContext => ({
  ...ctx,
  step: ctx.step + from.steps,
  ...(ctx.call !== undefined && { call: ctx.call + from.calls }),
});

/** Every callback that has a context gets it shifted; the others are as they were. */
function withContext(callbacks: AgentCallbacks, at: (ctx: AgentContext) => AgentContext): AgentCallbacks {
  const { onCommand, onStep, onPhase, onError, onCallWanted, onCallBegan } = callbacks;
  return {
    ...callbacks,
    onCommand: (ctx, command) => {
      const { step } = at({ ...ctx, step: command.step });
      onCommand?.(at(ctx), { ...command, step });
    },
    onStep: (ctx) => onStep?.(at(ctx)),
    onPhase: (ctx, phase) => onPhase?.(at(ctx), phase),
    onError: (ctx, error) => onError?.(at(ctx), error),
    onCallWanted: async (ctx, estimate, signal) => onCallWanted?.(at(ctx), estimate, signal),
    onCallBegan: (ctx, call) => onCallBegan?.(at(ctx), call),
  };
}

function recordRuns(callbacks: AgentCallbacks): RunsRecord {
  const next: Offsets = { steps: 0, messages: 0, calls: 0 };
  let tokens = 0;
  let spentNano = 0;
  const estimates = new Map<string, NanoDollars | null>();
  return {
    get steps() {
      return next.steps;
    },
    get tokens() {
      return tokens;
    },
    get spentNano() {
      return spentNano;
    },
    ran(steps) {
      next.steps += steps;
    },
    callbacks(task_step) {
      const from = { ...next };
      const at = (ctx: AgentContext) => {
        const shown = shifted(ctx, from);
        if (shown.call !== undefined) next.calls = Math.max(next.calls, shown.call + 1);
        return shown;
      };
      const inner = withContext(callbacks, at);
      return {
        ...inner,
        onMessage(ctx, message, index) {
          const seq = index + from.messages;
          next.messages = Math.max(next.messages, seq + 1);
          callbacks.onMessage?.(at(ctx), { ...message, extra: { ...message.extra, task_step } }, seq);
        },
        onProgramCall(ctx, { call, firstMessage, replyMessage, label }) {
          callbacks.onProgramCall?.(at(ctx), {
            label,
            call: { ...call, index: call.index + from.calls, step: call.step + from.steps },
            firstMessage: firstMessage + from.messages,
            replyMessage: replyMessage === null ? null : replyMessage + from.messages,
          });
        },
        onCallBegan(ctx, call) {
          estimates.set(`${at(ctx).call} ${call.try}`, call.estimateNano);
          inner.onCallBegan?.(ctx, call);
        },
        onCallEnded(ctx, call) {
          const estimate = estimates.get(`${at(ctx).call} ${call.try}`) ?? null;
          spentNano += call.costNano ?? (call.state === 'ok' ? (estimate ?? 0) : 0);
          const { usage } = call;
          if (usage) tokens += usage.input + usage.cacheRead + usage.cacheWrite + usage.output;
          callbacks.onCallEnded?.(at(ctx), call);
        },
      };
    },
  };
}
