/** The templates an agent works with: the configuration's, else the defaults of its protocol or of the published agent it imitates. */
import type { AgentConfig } from '../agentConfig.ts';

export const TEMPLATE_SLOTS = ['system', 'instance', 'observation', 'format_error', 'timeout'] as const;
export type TemplateSlot = (typeof TEMPLATE_SLOTS)[number];
export type Templates = Readonly<Record<TemplateSlot, string>>;

/** mini-swe-agent 2 takes at 10000 characters the long branch, "0 characters elided" included; ours does the same. */
const OBSERVATION = `{% if output.exception_info -%}
<exception>{{ output.exception_info }}</exception>
{% endif -%}
<returncode>{{ output.returncode }}</returncode>
{% if output.output | length < 10000 -%}
<output>
{{ output.output -}}
</output>
{%- else -%}
<warning>
The output is too long to show. Narrow it down: head, tail or sed for parts of a file, a stricter pattern for a search,
or redirect it to a file and look into that.
</warning>
<output_head>
{{ output.output[:5000] }}
</output_head>
<elided_chars>
{{ output.output | length - 10000 }} characters elided
{%- if output.omitted_bytes %}, {{ output.omitted_bytes }} bytes omitted before that{% endif %}
</elided_chars>
<output_tail>
{{ output.output[-5000:] }}
</output_tail>
{%- endif %}`;

/** The seeds' text (agent-error-handling.md), and what to do about a reply that was cut off. */
const BLOCK_FORMAT_ERROR = `{% if finish_reason == 'length' and actions | length == 0 -%}
Your reply reached the output token limit and was cut off before it held an action. Be brief, and give exactly one action.

{% endif -%}
Please always provide EXACTLY ONE action in triple backticks, found {{actions|length}} actions.

Please format your action in triple backticks as shown in <response_example>.

<response_example>
Here are some thoughts about why you want to perform the action.

\`\`\`bash
<action>
\`\`\`
</response_example>`;

const TOOL_FORMAT_ERROR = `{% if finish_reason == 'length' -%}
Your reply reached the output token limit and was cut off. Be brief, and finish with one call of the bash tool.

{% endif -%}
Tool call error: {{ error }}

Call the tool bash with one argument, for example {"command": "ls -la"}.`;

const SEED_TIMEOUT = `The last command <command>{{action['action']}}</command> timed out and has been killed.
The output of the command was:
 <output>
{{output}}
</output>
Please try another command and make sure to avoid those requiring interactive input.`;

/** The seeds' template, with long output cut as in observations. */
const TIMEOUT = SEED_TIMEOUT.replace(
  '\n{{output}}\n',
  `
{% if output | length < 10000 -%}
{{ output }}
{%- else -%}
{{ output[:5000] }}
… {{ output | length - 10000 }} characters elided …
{{ output[-5000:] }}
{%- endif %}
`,
);

/** Defaults in the code of 1.17.5. */
const V1 = {
  observation: 'Observation: {{output}}',
  format_error: 'Please always provide EXACTLY ONE action in triple backticks.',
  timeout: `The last command <command>{{action['action']}}</command> timed out and has been killed.
The output of the command was:
{% if output | length < 10000 -%}
<output>
{{output}}
</output>
{%- else -%}
<warning>Output was too long and has been truncated.</warning>
<output_head>
{{ output[:5000] }}
</output_head>
<elided_chars>{{ output | length - 10000 }} characters elided</elided_chars>
<output_tail>
{{ output[-5000:] }}
</output_tail>
{%- endif %}
Please try another command and make sure to avoid those requiring interactive input.`,
};

/** Defaults in the code of 2.4.6; a timeout is an ordinary observation there. */
const V2 = {
  observation: `{% if output.exception_info %}<exception>{{output.exception_info}}</exception>
{% endif %}<returncode>{{output.returncode}}</returncode>
<output>
{{output.output}}</output>`,
  format_error: '{{ error }}',
  text_format_error:
    'Please always provide EXACTLY ONE action in triple backticks, found {{actions|length}} actions.',
};

type Chosen = Pick<
  AgentConfig,
  | 'protocol'
  | 'compat'
  | 'system_template'
  | 'instance_template'
  | 'observation_template'
  | 'format_error_template'
  | 'timeout_template'
>;

export function templatesOf(config: Chosen): Templates {
  const defaults = defaultsFor(config);
  return {
    system: config.system_template,
    instance: config.instance_template,
    observation: config.observation_template ?? defaults.observation,
    format_error: config.format_error_template ?? defaults.format_error,
    timeout: config.timeout_template ?? defaults.timeout,
  };
}

function defaultsFor({ protocol, compat }: Chosen): Omit<Templates, 'system' | 'instance'> {
  if (compat === 'mini-swe-agent-1') return V1;
  const text = protocol === 'bash-block';
  if (compat === 'mini-swe-agent-2')
    return {
      observation: V2.observation,
      format_error: text ? V2.text_format_error : V2.format_error,
      timeout: TIMEOUT,
    };
  return {
    observation: OBSERVATION,
    format_error: text ? BLOCK_FORMAT_ERROR : TOOL_FORMAT_ERROR,
    timeout: TIMEOUT,
  };
}
