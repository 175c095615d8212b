/** The names each template can use, with stand-in values: templates are checked and rendered with them when the config loads. */

import { float } from '../base/python/values.ts';
import { DEFAULT_ENVIRONMENT } from '../environment/environments.ts';
import type { Vars } from '../template/render.ts';
import { type AgentConfig, agentConfigSchema } from './agentConfig.ts';
import { behaviourOf } from './compat/behaviour.ts';
import { textResult } from './loop/protocol.ts';
import type { TemplateSlot } from './loop/templates.ts';

const OUTPUTS = ['', 'short\n', 'x'.repeat(9999), 'x'.repeat(10_000), '😀'.repeat(12_000)];

function observedVars(config: AgentConfig, output: string, exceptionInfo = ''): Vars {
  // Stand-in for a finished command; a template sees what its dialect shows of it.
  const result = textResult('', 0, exceptionInfo !== '');
  return behaviourOf(config.compat).observed({ result, output, exceptionInfo, command: 'ls' });
}

/** Of the environment and the model only what each of them gives: a template must not fail on one of them. */
function commonVars(config: AgentConfig): Vars {
  const unset = Object.fromEntries(Object.keys(agentConfigSchema.shape).map((key) => [key, null]));
  return {
    ...unset,
    ...config,
    cwd: '/testbed',
    timeout: 60,
    interpreter: ['bash', '-c'],
    environment_class: DEFAULT_ENVIRONMENT,
    // In a container version 1 knew nothing of the machine.
    ...(config.compat === 'mini-swe-agent-1'
      ? {}
      : { system: 'Linux', release: '6.1.0', version: '#1 SMP', machine: 'x86_64' }),
    model_name: 'model',
    model_kwargs: {},
    n_model_calls: 1,
    model_cost: float(0.5),
    elapsed_seconds: 1,
    deadline: '2026-01-01T00:00:00.000Z',
    steps_left: 9,
    task: 'task text',
    ...Object.fromEntries(config.expose_fields.map((field) => [field, 'field'])),
  };
}

/** Contexts that together go through the branches a template usually has. */
export function sampleContexts(slot: TemplateSlot, config: AgentConfig): Vars[] {
  const common = commonVars(config);
  switch (slot) {
    case 'system':
    case 'instance':
      return [common];
    case 'observation':
      return [
        ...OUTPUTS.map((output) => ({ ...common, output: observedVars(config, output) })),
        { ...common, output: observedVars(config, 'partial', 'timed out') },
      ];
    case 'timeout':
      return OUTPUTS.map((output) => ({ ...common, output, action: { action: 'ls', command: 'ls' } }));
    case 'format_error':
      return formatErrorContexts(config, common);
  }
}

function formatErrorContexts(config: AgentConfig, common: Vars): Vars[] {
  const replyOnly = config.compat === 'mini-swe-agent-2';
  const toolCalls = !replyOnly || config.protocol === 'tool-call';
  return [null, 'stop', 'length', 'tool_calls'].flatMap((finish_reason) =>
    [[], ['a', 'b']].map((actions) => ({
      ...(replyOnly ? {} : common),
      error: 'what is wrong',
      actions,
      finish_reason,
      ...(toolCalls ? { has_tool_calls: actions.length > 0 } : {}),
    })),
  );
}
