/**
 * Callbacks of the record and of the display. The record's (messages, commands, calls) must succeed: what they throw ends the attempt.
 * The display's may fail: the first failure is told to onDebug and the listener is then left out (the seeds' no-op tracer).
 */
import { stackOf } from '../../base/text/sourceLines.ts';
import type { CallListener } from '../../model/model.ts';
import type { AgentCallbacks, AgentContext } from '../contract.ts';

const DISPLAY = ['onStep', 'onPhase', 'onError', 'onDebug'] as const;
type Display = (typeof DISPLAY)[number];

export function guardDisplay(callbacks: AgentCallbacks): AgentCallbacks {
  const broken = new Set<Display>();
  const guarded: Partial<Record<Display, (...args: unknown[]) => void>> = {};
  for (const name of DISPLAY) {
    if (!callbacks[name]) continue;
    guarded[name] = (...args) => {
      if (broken.has(name)) return;
      try {
        (callbacks[name] as (...all: unknown[]) => void)(...args);
      } catch (error) {
        broken.add(name);
        if (name !== 'onDebug') guarded.onDebug?.(`${name} failed, going on without it`, debugData(error));
      }
    };
  }
  // The record keeps its own `this`.
  return { ...bindRecord(callbacks), ...(guarded as AgentCallbacks) };
}

const bindRecord = (callbacks: AgentCallbacks): AgentCallbacks => ({
  ...(callbacks.onMessage ? { onMessage: callbacks.onMessage.bind(callbacks) } : {}),
  ...(callbacks.onCommand ? { onCommand: callbacks.onCommand.bind(callbacks) } : {}),
  ...(callbacks.onProgramCall ? { onProgramCall: callbacks.onProgramCall.bind(callbacks) } : {}),
  ...(callbacks.onCallWanted ? { onCallWanted: callbacks.onCallWanted.bind(callbacks) } : {}),
  ...(callbacks.onCallBegan ? { onCallBegan: callbacks.onCallBegan.bind(callbacks) } : {}),
  ...(callbacks.onCallEnded ? { onCallEnded: callbacks.onCallEnded.bind(callbacks) } : {}),
});

/** The data of a debug message about an error: everything, for logs, never for people by default. */
export const debugData = (error: unknown): Readonly<Record<string, unknown>> =>
  error instanceof Error
    ? { error: error.message, name: error.name, stack: stackOf(error) }
    : { error: String(error) };

/** Every try waits for the budget, is counted, and told to the record. */
export const callListener = (callbacks: AgentCallbacks, context: () => AgentContext): CallListener => ({
  wanted: async (estimate, signal, waits) => callbacks.onCallWanted?.(context(), estimate, signal, waits),
  began: (call) => callbacks.onCallBegan?.(context(), call),
  ended: (call) => callbacks.onCallEnded?.(context(), call),
  phase: (phase) => callbacks.onPhase?.(context(), phase),
});
