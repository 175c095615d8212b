/** The record of an attempt in which an agent works several times: each run of it counts from where the one before ended. */
import type { AgentCallbacks, AgentContext } from '../../agent/contract.ts';
import type { NanoDollars } from '../../money.ts';

export interface StepRecord {
  /** For the next run of the agent, on this step of the task. */
  callbacks(step: string): AgentCallbacks;
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

export function recordSteps(callbacks: AgentCallbacks): StepRecord {
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
