/** A request in the common form as the bytes that the provider is asked with. The writers are those of the built-in agent. Pure. */

import type { DialectName } from '../../../model/dialects/dialects.ts';
import { dialectNamed } from '../../../model/dialects/everyDialect.ts';
import { knownModel } from '../../../model/knownModels.ts';
import type { Message } from '../../../model/model.ts';
import { modelConfigSchema } from '../../../model/modelConfig.ts';
import { checkedParameters } from '../../../model/parameters/checkParameters.ts';
import type { Body, CommonRequest } from './commonForm.ts';

export interface ProviderTarget {
  readonly dialect: DialectName;
  /** The id over the wire, and the name by which its abilities are known. */
  readonly model: string;
  readonly name: string;
  readonly streamed: boolean;
}

/** The answer may not be longer than the model's longest; servers refuse what asks for more. */
function lengthOf(asked: unknown, { dialect, name }: ProviderTarget): Body {
  if (typeof asked !== 'number') return {};
  const known = knownModel(name);
  const longest = known?.output ? Math.min(asked, known.output) : asked;
  return dialect === 'chat' && known?.maker === 'openai' && known.reasoning
    ? { max_completion_tokens: longest }
    : { max_tokens: longest };
}

/** How hard a model is to think is said to models that are known to think only: others refuse the word. */
function parametersFor(parameters: Body, target: ProviderTarget): { kept: Body; left: string[] } {
  const { max_tokens: longest, reasoning_effort: effort, tool_choice: choice, ...rest } = parameters;
  const efforts = knownModel(target.name)?.efforts;
  const thinks = typeof effort === 'string' && (efforts?.includes(effort) ?? false);
  const kwargs = {
    ...rest,
    ...lengthOf(longest, target),
    ...(thinks && { reasoning_effort: effort }),
    ...(choice !== undefined && choice !== 'auto' && { tool_choice: choice }),
  };
  const { model_kwargs: kept } = checkedParameters({
    ...{ model_name: target.name, dialect: target.dialect, model_kwargs: kwargs, drop_params: true },
  }).model;
  const dropped = Object.keys(kwargs).filter((name) => !(name in kept));
  return { kept, left: [...dropped, ...(effort !== undefined && !thinks ? ['reasoning effort'] : [])] };
}

/** Two protocols have one place for instructions, before the conversation: what comes later is said where it stands. */
function instructed(messages: readonly Message[], dialect: DialectName): readonly Message[] {
  if (dialect === 'chat' || dialect === 'responses') return messages;
  const begun = messages.findIndex(({ role }) => role !== 'system');
  return messages.map((message, index) =>
    message.role === 'system' && begun >= 0 && index > begun
      ? { ...message, role: 'user' as const }
      : message,
  );
}

export function toProvider(
  request: CommonRequest,
  target: ProviderTarget,
): { body: Buffer; left: readonly string[] } {
  const { dialect, model, name, streamed } = target;
  const { kept, left } = parametersFor(request.parameters, target);
  const config = modelConfigSchema.parse({
    ...{ model_name: name, dialect, stream: streamed },
    model_kwargs: request.tools.length > 0 ? kept : withoutTools(kept),
  });
  const writer = dialectNamed(dialect).createWriter(config, model, 'own');
  const tools = request.tools.length > 0 ? request.tools : undefined;
  const body = Buffer.from(writer.write(instructed(request.messages, dialect), tools));
  return { body, left };
}

const withoutTools = ({ tool_choice: _choice, parallel_tool_calls: _parallel, ...rest }: Body): Body => rest;
